"""Folds the contract's folder into one document: references between files become components, overlays are applied."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .names import Enums, Names
from .overlay import apply
from .source import ContractError, Json, json_path, line_of, read

METHODS = ("get", "put", "post", "delete", "patch")
KINDS = ("schemas", "parameters", "responses", "headers", "examples")


def load(entry: Path, overlays: Sequence[Path] = (), names_of: Mapping[str, Json] | None = None) -> dict[str, Json]:
    """The whole contract behind an entry file, as one OpenAPI document.

    `names_of` is the document whose events and scopes are folded in instead of its own, or of those of the file that it
    names (`x-names-from`). Raises ContractError, with file and line or JSONPath, for a file that
    cannot be read, a reference that leads nowhere, or an overlay that does not fit.
    """
    document = _Fold(entry).document()
    enums = Enums()
    if names_of is None:
        names_of = read(entry.parent / document["x-names-from"]) if "x-names-from" in document else document
    names = Names(dict(names_of))
    if "x-names-from" in document:
        _follow_events(document, names)
    enums.fold(document, names)
    for overlay in overlays:
        document = apply(document, overlay)
        try:
            enums.fold(document, Names(document))
        except ContractError as error:
            raise ContractError(f"{overlay}: {error}") from None
    try:
        _check_references(document)
    except ContractError as error:
        raise told_by(overlays, error) from None
    return document


def told_by(overlays: Sequence[Path], error: ContractError) -> ContractError:
    """The same fault, with the overlays in front that made it: without them the contract has none."""
    return ContractError(f"{', '.join(map(str, overlays))}: {error}") if overlays else error


def _follow_events(document: dict[str, Json], names: Names) -> None:
    """The operations emit the events that the document of the events says, whatever these are called there."""
    for item in document["paths"].values():
        for method in METHODS:
            operation = item.get(method, {})
            if "x-emits" in operation:
                operation["x-emits"] = names.emitted(operation["operationId"], operation["x-emits"])


class _Fold:
    """One fold: reads each file once and collects the components it meets."""

    def __init__(self, entry: Path) -> None:
        self.entry = entry.resolve()
        self.root = self.entry.parent
        self.files: dict[Path, Json] = {}
        self.components: dict[str, dict[str, Json]] = {}

    def document(self) -> dict[str, Json]:
        raw = self._read(self.entry)
        if not isinstance(raw, dict) or "paths" not in raw:
            raise ContractError(f"{self.entry}: not an OpenAPI document (no paths)")
        folded: dict[str, Json] = self._walk(raw, self.entry, ())
        components = folded.setdefault("components", {})
        for kind in KINDS:
            if kind in self.components:
                components[kind] = {name: self.components[kind][name] for name in sorted(self.components[kind])}
        for item in folded["paths"].values():
            _merge_parameters(item, components.get("parameters", {}))
        return folded

    def _read(self, path: Path) -> Json:
        if path not in self.files:
            self.files[path] = read(path)
        return self.files[path]

    def _walk(self, node: Json, file: Path, at: tuple[str | int, ...]) -> Json:
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str):
                return self._follow(reference, file, at)
            return {key: self._walk(value, file, (*at, key)) for key, value in node.items()}
        if isinstance(node, list):
            return [self._walk(value, file, (*at, i)) for i, value in enumerate(node)]
        return node

    def _follow(self, reference: str, file: Path, at: tuple[str | int, ...]) -> Json:
        if reference.startswith("#/components/securitySchemes/"):
            return {"$ref": reference}
        name, _, fragment = reference.partition("#")
        target = (file.parent / name).resolve() if name else file

        def where() -> str:
            return f"{file}:{line_of(file, [*at, '$ref']) or '?'}"

        if not target.is_relative_to(self.root):
            raise ContractError(f"{where()}: {reference} leads out of {self.root.name}/")
        try:
            value = self._read(target)
        except ContractError as error:
            if target.exists():
                raise
            raise ContractError(f"{where()}: {reference} leads to no file") from error
        inside = target.relative_to(self.root).parts
        if len(inside) == 3 and inside[0] == "components" and inside[1] in KINDS and not fragment:
            kind, component = inside[1], target.stem
            known = self.components.setdefault(kind, {})
            if component not in known:
                known[component] = {}  # stands in while a recursive schema meets itself
                known[component] = self._walk(value, target, ())
            return {"$ref": f"#/components/{kind}/{component}"}
        steps = [step.replace("~1", "/").replace("~0", "~") for step in fragment.lstrip("/").split("/") if step]
        for step in steps:
            if not isinstance(value, dict) or step not in value:
                raise ContractError(f"{where()}: {reference} leads to nothing in {target.name}")
            value = value[step]
        return self._walk(value, target, tuple(steps))


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
    """Every reference of the result must lead somewhere; an overlay can break one."""
    pending: list[tuple[list[str | int], Json]] = [([], document)]
    while pending:
        at, node = pending.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and not _resolves(document, reference):
                raise ContractError(f"{json_path(at)}: {reference} leads nowhere")
            pending.extend(([*at, key], value) for key, value in node.items())
        elif isinstance(node, list):
            pending.extend(([*at, i], value) for i, value in enumerate(node))


def _resolves(document: Json, reference: str) -> bool:
    if not reference.startswith("#/"):
        return False
    node = document
    for step in reference[2:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, dict) or step not in node:
            return False
        node = node[step]
    return True
