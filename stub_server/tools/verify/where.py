"""Finds the line in the contract's files for a pointer into the bundled contract."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import yaml

from ...contract.bundle import contracts
from ...contract.document import Document
from ...contract.source import Place, unescaped
from .catalogue import located, pointer_of
from .findings import Divergence, Line
from .showing import cut

_LONGEST = 160  # characters of a line that are shown


class Where:
    """The lines of one contract: the files of a folder, and overlays."""

    def __init__(self, folder: Path, document: Document, overlays: Sequence[Path] = ()) -> None:
        """`folder` has `openapi.yaml`; `document` is the bundled contract with the overlays."""
        self._folder, self._document = folder.resolve(), document
        self._overlays = contracts(self._folder, overlays).overlays

    def locate(self, divergences: Iterable[Divergence]) -> None:
        """Set the lines of divergences; without a pointer it is that of the operation."""
        for each in divergences:
            at = self._document.operations.get(each.operation)
            each.line = self.line(each.pointer or ("" if at is None else pointer_of(at)))

    def line(self, pointer: str) -> Line:
        """The line of a pointer, or of the closest parent that the files have.

        It is that of the overlay's action that was the last to change the place.
        """
        touch = self._overlays.last_touch(pointer) if pointer else None
        name, _, touched = (touch or "").rpartition(":")
        if touched.isdecimal():
            path, number = Path(name), int(touched)
        else:
            path, place = self._place(pointer)
            number = _key_of(_nodes(path), place)[0].start_mark.line + 1
            name = f"{self._folder.name}/{path.relative_to(self._folder).as_posix()}"
        lines = path.read_text(encoding="utf-8").splitlines()
        text = lines[number - 1].strip()
        if text.endswith(":") and number < len(lines):
            text += " " + lines[number].strip()
        return Line(name, number, cut(text, _LONGEST))

    def _place(self, pointer: str) -> tuple[Path, Place]:
        """The file that has what a pointer leads to, and the place in it."""
        entry = self._folder / "openapi.yaml"
        match located(self._document, pointer)[0]:
            case ["components", kind, name, *steps]:
                folder = self._folder / "components"
                for path in (folder / f"{kind}.yaml", *(folder / str(kind)).rglob("*.yaml")):
                    if path.is_file() and _child(_nodes(path), name) is not None:
                        return path, [name, *steps]
            case ["paths", path, *steps] if steps:
                reference = _key_of(_nodes(entry), ["paths", path, "$ref"])[1]
                name, _, fragment = str(reference.value).partition("#")
                item: Place = [*unescaped(fragment)]
                return self._folder / name, [*item, *_unbundled(steps, self._folder / name, item)]
            case at:
                return entry, at
        return entry, []


def _unbundled(steps: Place, file: Path, item: Place) -> Place:
    """Steps in a path, whose parameters bundling puts before those of each operation."""
    match steps:
        case [method, "parameters", int(number), *rest]:
            shared = _child(_key_of(_nodes(file), item)[1], "parameters")
            own = number - (0 if shared is None else len(shared[1].value))
            return ["parameters", number, *rest] if own < 0 else [method, "parameters", own, *rest]
    return steps


@cache
def _nodes(file: Path) -> yaml.Node:
    """The root of a file of the contract."""
    root = yaml.compose(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    assert root is not None
    return root


def _key_of(node: yaml.Node, place: Place) -> tuple[yaml.Node, yaml.Node]:
    """The key and the value at a place; of an item, it is the value twice.

    References within the file are followed. If the file does not have the place, these are those of
    the closest parent.
    """
    root = key = node
    for step in place:
        while reference := _child(node, "$ref"):
            target = reference[1].value
            if step == "$ref" or not target.startswith("#"):
                break
            node = _key_of(root, [*unescaped(target)])[1]
        found = _child(node, step)
        if found is None:
            break
        key, node = found
    return key, node


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """The key and the value of a member, or an item twice."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None
