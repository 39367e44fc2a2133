"""Bundles the contract's files into one document: references become components, overlays are applied.

The shipped contract is bundled once and cached: that takes 160 ms, reading the cache 15.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import orjson

from .checks import check_shapes
from .generated import Emitting, Names, emitting, generate
from .overlay import apply, last_touch
from .source import METHODS, ContractError, Json, error_at, line_of, nodes, path_to, read, unescaped, value_at

KINDS = ("schemas", "parameters", "responses", "headers", "examples")
CACHE = Path(cache_from_source(__file__)).with_name("contract.json")
"""Among the byte code of this package, which Python caches in the same way, or is asked not to."""


def contracts(folder: Path, file: Path = CACHE) -> tuple[dict[str, Json], dict[str, Json]]:
    """The API contract and the control contract of a folder, without overlays, as `load` returns them.

    They come from the cache in `file` if it was made of the same files by the same code. Otherwise it is written,
    unless Python writes no byte code or the place is not writable. Raises ContractError, as `load`.
    """
    sources = _digest(folder)
    with suppress(OSError):
        head, _, cached = file.read_bytes().partition(b"\n")
        if head == _head(sources, cached):
            api, control = orjson.loads(cached)
            return api, control
    read_once = cache(read)  # the two share files
    api = load(folder / "openapi.yaml", (), read_once)
    control = load(folder / "sandbox.yaml", (), read_once, api)
    if not sys.dont_write_bytecode and _digest(folder) == sources:  # else a file has changed meanwhile
        made = orjson.dumps([api, control])
        with suppress(OSError):
            file.write_bytes(_head(sources, made) + b"\n" + made)
    return api, control


def _head(sources: bytes, cached: bytes) -> bytes:
    """The first line of the cache. No other content has it, so a file that is half written is not used."""
    return blake2b(sources + cached).hexdigest().encode()


def _digest(folder: Path) -> bytes:
    """Of the files of a contract, and of the code that bundles them."""
    digest = blake2b()
    for root, suffix in ((folder, ".yaml"), (Path(__file__).parent, ".py")):
        for place, folders, names in os.walk(root):
            folders.sort()
            for path in (os.path.join(place, name) for name in sorted(names) if name.endswith(suffix)):
                digest.update(f"\n{path}\n".encode())
                with suppress(OSError), open(path, "rb") as file:  # if it is needed, bundling rejects it
                    digest.update(blake2b(file.read()).digest())
    return digest.digest()


def load(
    entry: Path,
    overlays: Sequence[Path] = (),
    reader: Callable[[Path], Json] = read,
    names_of: Mapping[str, Json] | None = None,
) -> dict[str, Json]:
    """The contract of an entry file as one OpenAPI document, which shares no data with what `reader` returns.

    Names of events, scopes and operations are taken from the bundled document `names_of`; without it, from the file in
    `x-names-from`, or else from this document. Raises ContractError, with file and line or JSONPath, for a file that
    cannot be read, a reference without a target, or an overlay that does not fit.
    """
    document = _Bundler(entry, reader).document()
    controls = document.pop("x-controls-from", None)
    emitters = [] if controls is None else _Bundler(entry.parent / str(controls), reader).emitting()
    if names_of is None:
        named = document.get("x-names-from")
        names_of = document if named is None else load(entry.parent / str(named), (), reader)
    names = Names(dict(names_of))
    if "x-names-from" in document:
        _take_names(document, names)
    generate(document, names, emitters)
    shipped = document
    for overlay in overlays:
        before = document
        document = apply(document, overlay)
        with naming((overlay,), before):
            check_shapes(document)
            generate(document, Names(document), emitters, before)
    with naming(overlays, shipped):
        _check_references(document)
    _merge_parameters(document)
    return document


@contextmanager
def naming(overlays: Sequence[Path], shipped: dict[str, Json] | None) -> Iterator[None]:
    """Have an error name the overlays."""
    try:
        yield
    except ContractError as error:
        raise name_overlays(overlays, error, shipped) from None


def name_overlays(overlays: Sequence[Path], error: ContractError, shipped: dict[str, Json] | None) -> ContractError:
    """The error with the overlay files in front, as the contract has no such fault without them.

    With `shipped`, the document before the overlays, it is the line of the action that brought it, where one did.
    """
    if not overlays:
        return error
    where = None if shipped is None else last_touch(shipped, overlays, str(error))
    return ContractError(f"{where or ', '.join(map(str, overlays))}: {error}")


def _take_names(document: dict[str, Json], names: Names) -> None:
    """Take lifecycles, and the events that operations emit, from `names`, the document that describes them."""
    for name, schema in document["components"]["schemas"].items():
        if name in names.lifecycles:
            schema["x-lifecycle"] = names.lifecycles[name]
    for item in document["paths"].values():
        for method in METHODS:
            operation = item.get(method, {})
            if "x-emits" in operation:
                operation["x-emits"] = names.emitted(operation["operationId"], operation["x-emits"])


class _Bundler:
    """Bundles one document: reads each file once and collects the components that it refers to."""

    def __init__(self, entry: Path, reader: Callable[[Path], Json]) -> None:
        self.entry = entry.resolve()
        self.read = cache(reader)
        self.components: dict[str, dict[str, Json]] = {}

    def document(self) -> dict[str, Json]:
        entry = self.read(self.entry)
        if not isinstance(entry, dict) or "paths" not in entry:
            raise ContractError(f"{self.entry}: not an OpenAPI document (no paths)")
        bundled: dict[str, Json] = self._walk(entry, self.entry)
        components = bundled.setdefault("components", {})
        for kind in KINDS:
            if kind in self.components:
                components[kind] = dict(sorted(self.components[kind].items()))
        _merge_parameters(bundled)
        return bundled

    def emitting(self) -> list[Emitting]:
        """The operations behind the entry file with the events that they name, without bundling the rest."""
        items = self.read(self.entry)["paths"].values()
        return [*emitting(self._pointed(item, self.entry)[0] for item in items)]

    def _walk(self, node: Json, file: Path) -> Json:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                return self._follow(node, file)
            return {key: self._walk(value, file) for key, value in node.items()}
        return [self._walk(value, file) for value in node] if isinstance(node, list) else node

    def _follow(self, node: dict[str, Json], file: Path) -> Json:
        if node["$ref"].startswith("#/components/securitySchemes/"):
            return {"$ref": node["$ref"]}
        value, target = self._pointed(node, file)
        parts = target.relative_to(self.entry.parent).parts
        if len(parts) != 3 or parts[0] != "components" or parts[1] not in KINDS or value is not self.read(target):
            return self._walk(value, target)
        known = self.components.setdefault(parts[1], {})
        if target.stem not in known:
            known[target.stem] = {}  # placeholder while a recursive schema refers to itself
            known[target.stem] = self._walk(value, target)
        return {"$ref": f"#/components/{parts[1]}/{target.stem}"}

    def _pointed(self, node: dict[str, Json], file: Path) -> tuple[Json, Path]:
        """The value that a reference leads to, and its file."""
        name, _, fragment = str(node["$ref"]).partition("#")
        target, folder = Path(os.path.normpath(file.parent / name)) if name else file, self.entry.parent
        with suppress(KeyError):
            if target.is_relative_to(folder) and target.is_file():
                return value_at(self.read(target), [step for step in unescaped(fragment) if step]), target
        line = line_of(file, [*(path_to(node, self.read(file)) or ()), "$ref"]) or "?"
        raise ContractError(f"{file}:{line}: {node['$ref']} leads to nothing in {folder.name}/")


def _merge_parameters(document: dict[str, Json]) -> None:
    """Move the parameters of paths into their operations, so that each has all of its own."""
    for item in document["paths"].values():
        common = item.pop("parameters", [])
        for operation in [item[method] for method in METHODS if method in item] if common else ():
            own = operation.get("parameters", [])
            named = {_parameter_key(each, document) for each in own}
            operation["parameters"] = [each for each in common if _parameter_key(each, document) not in named] + own


def _parameter_key(parameter: dict[str, Json], document: dict[str, Json]) -> tuple[Any, Any]:
    if "$ref" in parameter:
        parameter = value_at(document, unescaped(parameter["$ref"]))
    return parameter.get("in"), parameter.get("name")


def _check_references(document: dict[str, Json]) -> None:
    """Check that every reference of the document has a target; an overlay can break one."""
    good: set[str] = set()
    for at, node in nodes(document):
        reference = node.get("$ref") if isinstance(node, dict) else None
        if isinstance(reference, str) and reference not in good:
            fault = _fault(document, reference)
            if fault is not None:
                raise error_at(at, f"{reference} {fault}")
            good.add(reference)


def _fault(document: Json, reference: str) -> str | None:
    """Why a reference has no target: it leads nowhere, or to itself; None for a good one."""
    seen: set[str] = set()
    while reference not in seen:
        seen.add(reference)
        try:
            node = value_at(document, unescaped(reference)) if reference.startswith("#/") else None
        except KeyError:
            node = None
        if node is None:
            return "leads nowhere"
        if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
            return None
        reference = node["$ref"]
    return "leads back to itself"
