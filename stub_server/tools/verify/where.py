"""Finds the line in the contract's files for a pointer into the bundled contract."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import yaml

from ...contract.bundle import contracts
from ...contract.document import Document
from ...contract.source import unescaped
from .catalogue import pointer_of
from .findings import Divergence, Line
from .showing import cut

_LONGEST = 160  # characters of a line that are shown


class Where:
    """The lines of one contract: the files of a folder, and overlays."""

    def __init__(self, folder: Path, document: Document, overlays: Sequence[Path] = ()) -> None:
        """`folder` has `openapi.yaml`; `document` is the bundled contract with the overlays."""
        self._folder, self._document = folder.resolve(), document
        self._overlays = contracts(self._folder, overlays).overlays
        self._read = cache(_read)

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
            mark = self._place(unescaped(pointer))[0].start_mark
            path, number = Path(mark.name), mark.line + 1
            name = f"{self._folder.name}/{path.relative_to(self._folder).as_posix()}"
        lines = self._read(path)[1]
        text = lines[number - 1].strip()
        if text.endswith(":") and number < len(lines):
            text += " " + lines[number].strip()
        return Line(name, number, cut(text, _LONGEST))

    def _place(self, steps: list[str]) -> tuple[yaml.Node, yaml.Node | None]:
        """The node whose line is shown, which is the name of a value if it has one; and the value.

        There is no value for a place that the files do not have.
        """
        if (
            steps[:1] == ["paths"]
            and steps[3:4] == ["parameters"]
            and steps[4:5]
            and steps[4].isdecimal()
        ):
            # Bundling puts the parameters of a path before those of each operation.
            shared = self._place([*steps[:2], "parameters"])[1]
            length = len(shared.value) if isinstance(shared, yaml.SequenceNode) else 0
            own = [*steps[:4], str(int(steps[4]) - length), *steps[5:]]
            steps = [*steps[:2], *steps[3:]] if int(steps[4]) < length else own
        mark = node = self._read(self._folder / "openapi.yaml")[0]
        if steps[:1] == ["components"] and len(steps) > 2:
            file = self._components(steps[1], steps[2])
            if file is not None:
                node, steps = file, steps[2:]
        for step in steps:
            found = _child(self._followed(node), step)
            if found is None:
                return mark, None
            mark, node = found
        return mark, node

    def _components(self, kind: str, name: str) -> yaml.Node | None:
        """The root of the file that has a component, None if no file has it."""
        folder = self._folder / "components"
        for path in (folder / f"{kind}.yaml", *sorted((folder / kind).rglob("*.yaml"))):
            if path.is_file() and _child(self._read(path)[0], name) is not None:
                return self._read(path)[0]
        return None

    def _followed(self, node: yaml.Node) -> yaml.Node:
        """The node that a node refers to; the node itself without a reference."""
        while (reference := _child(node, "$ref")) is not None:
            name, _, fragment = str(reference[1].value).partition("#")
            path = Path(node.start_mark.name)
            node = self._read((path.parent / name).resolve() if name else path)[0]
            for step in unescaped(fragment):
                below = _child(node, step)
                assert below is not None  # else the contract would not have been bundled
                node = below[1]
        return node


def _read(path: Path) -> tuple[yaml.Node, list[str]]:
    """A file of the contract, or an overlay that was applied: its root and its lines."""
    with path.open(encoding="utf-8") as file:
        root = yaml.compose(file, yaml.CSafeLoader)
    assert root is not None
    return root, path.read_text(encoding="utf-8").splitlines()


def _child(node: yaml.Node, step: str) -> tuple[yaml.Node, yaml.Node] | None:
    """The key and the value of a member, or an item twice."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and step.isdecimal() and int(step) < len(node.value):
        return node.value[int(step)], node.value[int(step)]
    return None
