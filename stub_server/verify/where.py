"""Finds the line in the contract's files for a pointer into the bundled contract."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import yaml

from ..contract.bundle import contracts
from ..contract.document import Document
from ..contract.overlay import last_touch
from ..contract.source import Json, unescaped
from .places import pointer_of
from .showing import cut

_LONGEST = 120  # characters of a line that are shown


class Line(NamedTuple):
    """A line of the contract. `file` is its path in the repository (`openapi/…`), or the path of an overlay as given.

    `number` counts from 1. `text` is the line, and the next one if it has only a name.
    """

    file: str
    number: int
    text: str


class _File(NamedTuple):
    """A file of the contract: its path, its nodes and its lines."""

    path: Path
    root: yaml.Node
    lines: list[str]


class _Place(NamedTuple):
    """A node of a file, and the node whose line is shown: its name, if it has one.

    Unless it `is_whole`, it is the closest parent of a place that the files do not have.
    """

    file: _File
    mark: yaml.Node
    node: yaml.Node
    is_whole: bool


class Where:
    """The lines of one contract: the files of a folder, and overlays."""

    def __init__(self, folder: Path, document: Document, overlays: Sequence[Path] = ()) -> None:
        """`folder` has `openapi.yaml`; `document` is the bundled contract with the overlays."""
        self._folder, self._document, self._overlays = folder.resolve(), document, overlays
        self._files: dict[Path, _File] = {}
        self._lines: dict[str, Line] = {}

    def line(self, pointer: str, operation: str = "") -> Line:
        """The line of a pointer, or of the closest parent that the files have. An empty pointer is the operation's."""
        if not pointer and operation in self._document.operations:
            pointer = pointer_of(self._document.operations[operation])
        if pointer not in self._lines:
            self._lines[pointer] = self._overlay(pointer) or self._shipped(unescaped(pointer))
        return self._lines[pointer]

    @cached_property
    def _without_overlays(self) -> dict[str, Json]:
        return contracts(self._folder)[0]

    def _overlay(self, pointer: str) -> Line | None:
        """The line of the overlay's action that was the last to change a place."""
        touch = last_touch(self._without_overlays, self._overlays, pointer) if self._overlays and pointer else None
        name, _, number = (touch or "").rpartition(":")
        if not number.isdecimal():
            return None
        return Line(name, int(number), _shown(self._read(Path(name)).lines, int(number)))

    def _shipped(self, steps: list[str]) -> Line:
        if steps[:1] == ["paths"] and steps[3:4] == ["parameters"] and steps[4:5] and steps[4].isdecimal():
            # Bundling puts the parameters of a path before those of each operation.
            shared, number = self._length([*steps[:2], "parameters"]), int(steps[4])
            own = [*steps[:4], str(number - shared), *steps[5:]]
            steps = [*steps[:2], *steps[3:]] if number < shared else own
        place = self._walk(steps)
        number = place.mark.start_mark.line + 1
        name = f"{self._folder.name}/{place.file.path.relative_to(self._folder).as_posix()}"
        return Line(name, number, _shown(place.file.lines, number))

    def _length(self, steps: list[str]) -> int:
        place = self._walk(steps)
        return len(place.node.value) if place.is_whole and isinstance(place.node, yaml.SequenceNode) else 0

    def _walk(self, steps: list[str]) -> _Place:
        """The place that steps lead to. References on the way are followed, but not one at the end."""
        path, at = self._folder / "openapi.yaml", 0
        if steps[:1] == ["components"] and len(steps) > 2:
            component = self._folder.joinpath(*steps[:2], f"{steps[2]}.yaml")
            if component.is_file():
                path, at = component, 3
        file = self._read(path)
        mark = node = file.root
        for step in steps[at:]:
            below, parent = self._followed(file, node)
            found = _child(parent, step)
            if found is None:
                return _Place(file, mark, node, is_whole=False)
            file, (mark, node) = below, found
        return _Place(file, mark, node, is_whole=True)

    def _followed(self, file: _File, node: yaml.Node) -> tuple[_File, yaml.Node]:
        """The file and the node that a node refers to; the node itself without a reference."""
        while (found := _child(node, "$ref")) is not None:
            name, _, fragment = str(found[1].value).partition("#")
            file = self._read((file.path.parent / name).resolve()) if name else file
            node = file.root
            for step in unescaped(fragment):
                below = _child(node, step)
                assert below is not None  # else the contract would not have been bundled
                node = below[1]
        return file, node

    def _read(self, path: Path) -> _File:
        if path not in self._files:
            text = path.read_text(encoding="utf-8")
            root = yaml.compose(text, yaml.CSafeLoader)
            assert root is not None  # a file of the contract, or an overlay that was applied
            self._files[path] = _File(path, root, text.splitlines())
        return self._files[path]


def _child(node: yaml.Node, step: str) -> tuple[yaml.Node, yaml.Node] | None:
    """The key and the value of a member, or an item twice."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and step.isdecimal() and int(step) < len(node.value):
        return node.value[int(step)], node.value[int(step)]
    return None


def _shown(lines: list[str], number: int) -> str:
    """A line by its number, and the next one if it has only a name."""
    text = lines[number - 1].strip()
    if text.endswith(":") and number < len(lines):
        text += " " + lines[number].strip()
    return cut(text, _LONGEST)
