"""Bundles the contract's files into one document: references become components, overlays are
applied.

The shipped contract is bundled once and cached: that takes 160 ms, reading the cache 15.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple

import orjson

from .answers import complete_answers
from .checks import shape_faults
from .document import Document
from .generated import Names, generate
from .overlay import Overlays
from .schema import needed
from .source import (
    ContractError,
    Json,
    JsonObject,
    error_at,
    nodes,
    operations_in,
    read,
    unescaped,
    value_at,
)

KINDS = ("schemas", "parameters", "responses", "headers", "examples")
CACHE = Path(cache_from_source(__file__)).with_name("contract.json")
"""Among the byte code of this package, which Python caches in the same way, or is asked not to."""


class Contracts(NamedTuple):
    """The contract with overlays, the control contract, and the contract without overlays if there
    are any.
    """

    document: Document
    control: Document
    shipped: Document | None
    overlays: Overlays


def contracts(folder: Path, files: Sequence[Path] = (), file: Path = CACHE) -> Contracts:
    """The contracts of a folder with overlay files, each with the names of events, scopes,
    operations and states.

    Raises ContractError, with file and line or JSONPath, for a file that cannot be read, a
    reference without a target, or an overlay that does not fit.
    """
    api, control = _shipped(folder, file)
    overlays = Overlays(files)
    if not files:
        return Contracts(Document(api), Document(control), None, overlays)
    document = overlays.apply(api)
    overlays.refuse(shape_faults(document, api))
    try:
        generate(document, Names(document), api)
    except ContractError as error:
        raise overlays.named(error) from None
    overlays.refuse(_broken_references(document))
    _merge_parameters(document)
    names = Names(document)
    generate(api, names)
    _take_names(control, names)
    return Contracts(Document(document), Document(control), Document(api), overlays)


def _shipped(folder: Path, file: Path) -> tuple[JsonObject, JsonObject]:
    """The API contract without overlays, and the control contract.

    They come from the cache in `file` if it was made of the same files by the same code. Otherwise
    it is written, unless Python writes no byte code or the place is not writable.
    """
    sources, head, cached = _digest(folder), b"", b""
    with suppress(OSError):
        head, _, cached = file.read_bytes().partition(b"\n")
    if head != _head(sources, cached):
        read_once = cache(read)  # the two share files
        control = bundled(folder / "sandbox.yaml", read_once)
        api = bundled(folder / "openapi.yaml", read_once)
        names = Names(api)
        generate(api, names)
        _take_names(control, names)
        cached = orjson.dumps([api, control])
        # else a file has changed meanwhile
        if not sys.dont_write_bytecode and _digest(folder) == sources:
            with suppress(OSError):
                file.write_bytes(_head(sources, cached) + b"\n" + cached)
    # no list is in two places, where an overlay would change both
    api, control = orjson.loads(cached)
    return api, control


def _head(sources: bytes, cached: bytes) -> bytes:
    """The first line of the cache.

    No other content has it, so a file that is half written is not used.
    """
    return blake2b(sources + cached).hexdigest().encode()


def _digest(folder: Path) -> bytes:
    """Of the files of a contract, and of the code that bundles them."""
    digest = blake2b()
    for path in sorted([*folder.rglob("*.yaml"), *Path(__file__).parent.rglob("*.py")]):
        digest.update(f"\n{path}\n".encode())
        # if it is needed, bundling rejects it
        with suppress(OSError):
            digest.update(blake2b(path.read_bytes()).digest())
    return digest.digest()


def _take_names(document: JsonObject, names: Names) -> None:
    """Take lifecycles, and all that is generated, from `names`, those of the document that
    describes them.
    """
    for name, schema in document["components"]["schemas"].items():
        if name in names.lifecycles:
            schema["x-lifecycle"] = names.lifecycles[name]
    generate(document, names)


def bundled(entry: Path, read_once: Callable[[Path], Json]) -> JsonObject:
    """The files of a contract as one document, which shares no data with what
    `read_once` returns.
    """
    written = _in_place(read_once(entry), entry, read_once)
    if not isinstance(written, dict) or "paths" not in written:
        raise ContractError(f"{entry}: not an OpenAPI document (no paths)")
    document: JsonObject = written
    for events in document.pop("x-webhook-files", ()):  # each file has those of one resource
        document.setdefault("x-webhooks", {}).update(events)
    components = document.setdefault("components", {})
    folder, known = entry.parent / "components", dict[str, JsonObject]()
    for file in folder.rglob("*.yaml"):
        # of `components/headers.yaml` and `components/schemas/plans.yaml`
        kind = file.relative_to(folder).parts[0].removesuffix(".yaml")
        known.setdefault(kind, {}).update(_in_place(read_once(file), file, read_once))
    used = needed(document, known)
    for kind in KINDS:
        if kind in used:
            components[kind] = dict(sorted(used[kind].items()))
    for error in _broken_references(document):
        raise error
    _merge_parameters(document)
    complete_answers(document)
    return document


def _in_place(node: Json, file: Path, read_once: Callable[[Path], Json]) -> Json:
    """A node of a file with what it refers to in place of its references, but for those to
    components.
    """
    if isinstance(node, list):
        return [_in_place(value, file, read_once) for value in node]
    if not isinstance(node, dict):
        return node
    reference = str(node.get("$ref", ""))
    if "$ref" not in node or reference.startswith("#/components/"):
        return {key: _in_place(value, file, read_once) for key, value in node.items()}
    name, _, pointer = reference.partition("#")
    target = file
    if name:
        target = Path(os.path.normpath(file.parent / name))
    try:
        found = value_at(read_once(target), unescaped(pointer))
    except KeyError:
        raise ContractError(f"{file}: {node['$ref']} leads to nothing") from None
    return _in_place(found, target, read_once)


def _merge_parameters(document: JsonObject) -> None:
    """Move the parameters of paths into their operations, so that each has all of its own.

    One of an operation replaces that of the path with its place and name.
    """
    resolve = Document(document).resolve
    common = {path: item.pop("parameters", []) for path, item in document["paths"].items()}
    for path, _, operation in operations_in(document):
        if common[path]:
            merged = {}
            for node in (*common[path], *operation.get("parameters", ())):
                about = resolve(node)
                merged[about.get("in"), about.get("name")] = node
            operation["parameters"] = [*merged.values()]


def _broken_references(document: JsonObject) -> Iterator[ContractError]:
    """The references of the document that have no target."""
    for at, node in nodes(document):
        met: set[str] = set()
        while isinstance(node, dict) and isinstance(reference := node.get("$ref"), str):
            node = None
            if reference.startswith("#/"):
                with suppress(KeyError):
                    node = value_at(document, unescaped(reference))
            if node is None:
                yield error_at(at, f"{reference} leads nowhere")
            if reference in met:
                yield error_at(at, f"{reference} leads back to itself")
                break
            met.add(reference)
