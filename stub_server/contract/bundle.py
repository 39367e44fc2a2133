"""Bundles the contract's files into one document: references become components, overlays are applied."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .emitters import Emitters, Emitting, emitting
from .names import Enums, Names
from .overlay import apply, last_touch
from .payloads import Payloads
from .source import ContractError, Json, json_path, line_of, read

METHODS = ("get", "put", "post", "delete", "patch")
KINDS = ("schemas", "parameters", "responses", "headers", "examples")


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
    emitters = Emitters(() if controls is None else _Bundler(entry.parent / str(controls), reader).emitting())
    enums, payloads = Enums(), Payloads()
    emitters.insert(document)
    if names_of is None:
        named = document.get("x-names-from")
        names_of = document if named is None else load(entry.parent / str(named), (), reader)
    names = Names(dict(names_of))
    if "x-names-from" in document:
        _follow(document, names)
    enums.insert(document, names)
    payloads.insert(document)
    shipped = document
    for overlay in overlays:
        before = document
        document = apply(document, overlay)
        try:
            emitters.insert(document)
            enums.insert(document, Names(document))
            payloads.insert(document)
        except ContractError as error:
            raise name_overlays((overlay,), error, before) from None
    try:
        _check_references(document)
    except ContractError as error:
        raise name_overlays(overlays, error, shipped) from None
    return document


def name_overlays(overlays: Sequence[Path], error: ContractError, shipped: dict[str, Json] | None) -> ContractError:
    """The error with the overlay files in front, as the contract has no such fault without them.

    With `shipped`, the document before the overlays, it is the line of the action that brought it, where one did.
    """
    if not overlays:
        return error
    where = None if shipped is None else last_touch(shipped, overlays, str(error))
    return ContractError(f"{where or ', '.join(map(str, overlays))}: {error}")


def _follow(document: dict[str, Json], names: Names) -> None:
    """Take lifecycles, and the events that operations emit, from `names`, the document that describes them."""
    for name, schema in document["components"]["schemas"].items():
        if name in names.lifecycles:
            schema["x-lifecycle"] = names.lifecycles[name]
    for item in document["paths"].values():
        for method in METHODS:
            operation = item.get(method, {})
            if "x-emits" in operation:
                operation["x-emits"] = names.emitted(operation["operationId"], operation["x-emits"])


class _File:
    """One file of the contract: its data and, where it is a component, the component's kind and name."""

    __slots__ = ("component", "data", "path", "targets")

    def __init__(self, path: Path, data: Json, component: tuple[str, str] | None) -> None:
        self.path, self.data, self.component = path, data, component
        self.targets: dict[str, _File] = {"": self}


class _Bundler:
    """Bundles one document: reads each file once and collects the components that it refers to."""

    def __init__(self, entry: Path, reader: Callable[[Path], Json]) -> None:
        self.reader = reader
        self.entry = entry.resolve()
        self.root = self.entry.parent
        self.files: dict[Path, _File] = {}
        self.resolved: dict[tuple[Path, str], Path] = {}
        self.components: dict[str, dict[str, Json]] = {}

    def document(self) -> dict[str, Json]:
        entry = self._file(self.entry)
        if not isinstance(entry.data, dict) or "paths" not in entry.data:
            raise ContractError(f"{self.entry}: not an OpenAPI document (no paths)")
        folded: dict[str, Json] = self._walk(entry.data, entry)
        components = folded.setdefault("components", {})
        for kind in KINDS:
            if kind in self.components:
                components[kind] = {name: self.components[kind][name] for name in sorted(self.components[kind])}
        for item in folded["paths"].values():
            _merge_parameters(item, components.get("parameters", {}))
        return folded

    def emitting(self) -> list[Emitting]:
        """The operations behind the entry file with the events that they name, without bundling the rest."""
        entry = self._file(self.entry)
        return [*emitting(self._pointed(item, entry)[0] for item in entry.data["paths"].values())]

    def _file(self, path: Path) -> _File:
        if path not in self.files:
            inside = path.relative_to(self.root).parts
            is_component = len(inside) == 3 and inside[0] == "components" and inside[1] in KINDS
            self.files[path] = _File(path, self.reader(path), (inside[1], path.stem) if is_component else None)
        return self.files[path]

    def _walk(self, node: Json, file: _File) -> Json:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                return self._follow(node, file)
            return {key: self._walk(v, file) if isinstance(v, (dict, list)) else v for key, v in node.items()}
        if isinstance(node, list):
            return [self._walk(v, file) if isinstance(v, (dict, list)) else v for v in node]
        return node

    def _follow(self, node: dict[str, Json], file: _File) -> Json:
        reference: str = node["$ref"]
        if reference.startswith("#/components/securitySchemes/"):
            return {"$ref": reference}
        value, target = self._pointed(node, file)
        if target.component and value is target.data:
            kind, component = target.component
            known = self.components.setdefault(kind, {})
            if component not in known:
                known[component] = {}  # placeholder while a recursive schema refers to itself
                known[component] = self._walk(target.data, target)
            return {"$ref": f"#/components/{kind}/{component}"}
        return self._walk(value, target)

    def _pointed(self, node: dict[str, Json], file: _File) -> tuple[Json, _File]:
        """What a reference leads to, and its file."""
        name, _, fragment = str(node["$ref"]).partition("#")
        target = file.targets.get(name)
        if target is None:
            target = file.targets[name] = self._target(name, node, file)
        value = target.data
        for step in fragment.lstrip("/").split("/"):
            if not step:
                continue
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(value, dict) or step not in value:
                raise ContractError(f"{_where(node, file)}: {node['$ref']} leads to nothing in {target.path.name}")
            value = value[step]
        return value, target

    def _target(self, name: str, node: dict[str, Json], file: _File) -> _File:
        path = self._resolve(file.path.parent, name)
        if not path.is_relative_to(self.root):
            raise ContractError(f"{_where(node, file)}: {node['$ref']} leads out of {self.root.name}/")
        try:
            return self._file(path)
        except ContractError as error:
            if path.exists():
                raise
            raise ContractError(f"{_where(node, file)}: {node['$ref']} leads to no file") from error

    def _resolve(self, folder: Path, name: str) -> Path:
        """The path that a file's name means in a folder, resolved once for each."""
        path = self.resolved.get((folder, name))
        if path is None:
            path = self.resolved[folder, name] = (folder / name).resolve()
        return path


def _where(node: dict[str, Json], file: _File) -> str:
    """File and line of a reference."""
    return f"{file.path}:{line_of(file.path, [*(path_to(node, file.data) or ()), '$ref']) or '?'}"


def path_to(wanted: Json, data: Json) -> list[str | int] | None:
    """The keys that lead from data to one object in it. They are searched for an error, not kept while bundling."""
    pending: list[tuple[list[str | int], Json]] = [([], data)]
    while pending:
        at, node = pending.pop()
        if node is wanted:
            return at
        if isinstance(node, dict):
            pending.extend(([*at, key], value) for key, value in node.items())
        elif isinstance(node, list):
            pending.extend(([*at, i], value) for i, value in enumerate(node))
    return None


def _merge_parameters(item: dict[str, Json], shared: dict[str, Json]) -> None:
    """Move a path's parameters into its operations, once each: Connexion would otherwise append them per middleware."""
    common = item.pop("parameters", [])
    for method in METHODS:
        if method not in item:
            continue
        own = item[method].get("parameters", [])
        taken = {_parameter_key(p, shared) for p in own}
        merged = [p for p in common if _parameter_key(p, shared) not in taken] + own
        if merged:
            item[method]["parameters"] = merged


def _parameter_key(parameter: dict[str, Json], shared: dict[str, Json]) -> tuple[Any, Any]:
    if "$ref" in parameter:
        parameter = shared[parameter["$ref"].rpartition("/")[2]]
    return parameter.get("in"), parameter.get("name")


def _check_references(document: dict[str, Json]) -> None:
    """Check that every reference of the document has a target; an overlay can break one."""
    pending: list[Json] = [document]
    good: set[str] = set()
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and reference not in good:
                fault = _fault(document, reference)
                if fault is not None:
                    where = json_path(path_to(node, document) or [])
                    raise ContractError(f"{where}: {reference} {fault}")
                good.add(reference)
            pending.extend(value for value in node.values() if isinstance(value, (dict, list)))
        elif isinstance(node, list):
            pending.extend(value for value in node if isinstance(value, (dict, list)))


def _fault(document: Json, reference: str) -> str | None:
    """Why a reference has no target: it leads nowhere, or to itself; None for a good one."""
    seen: set[str] = set()
    while reference not in seen:
        seen.add(reference)
        if not reference.startswith("#/"):
            return "leads nowhere"
        node = document
        for step in reference[2:].split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or step not in node:
                return "leads nowhere"
            node = node[step]
        if not isinstance(node, dict) or not isinstance(node.get("$ref"), str):
            return None
        reference = node["$ref"]
    return "leads back to itself"
