"""Finds the line in the contract's files for a pointer into the bundled contract."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import yaml

from ...contract.bundle import contracts
from ...contract.pointers import located
from ...contract.source import Place, child_of, unescaped
from .findings import Line, cut


class Where:
    """One contract and its lines: the files of a folder, and overlays."""

    def __init__(self, folder: Path, overlays: Sequence[Path] = ()) -> None:
        """`folder` has `openapi.yaml`. Raises ContractError."""
        self._folder = folder.resolve()
        self.document, _, _, self._overlays = contracts(self._folder, overlays)

    def line(self, pointer: str) -> Line:
        """The line of a pointer, or of the closest parent that the files have.

        It is that of the overlay's action that was the last to change the place.
        """
        touch = self._overlays.last_touch(unescaped(pointer))
        name, _, touched = (touch or "").rpartition(":")
        if touched.isdecimal():
            path, number = Path(name), int(touched)
        else:
            path, key, _ = _walked(*self._place(pointer))
            number = key.start_mark.line + 1
            name = f"{self._folder.name}/{path.relative_to(self._folder).as_posix()}"
        lines = path.read_text(encoding="utf-8").splitlines()
        text = lines[number - 1].strip()
        if text.endswith(":") and number < len(lines):
            text += " " + lines[number].strip()
        return Line(name, number, cut(text))

    def _place(self, pointer: str) -> tuple[Path, Place]:
        """The file that has what a pointer leads to, and the place in it."""
        entry, at = self._folder / "openapi.yaml", located(self.document, pointer)[0]
        match at:
            case ["components", kind, name, *steps]:
                for path in (self._folder / "components").rglob("*.yaml"):
                    is_of_kind = kind in (*path.parts, path.stem)
                    if is_of_kind and child_of(_nodes(path), name) is not None:
                        return path, [name, *steps]
            case ["paths", path, method, "parameters", int(number), *rest]:
                # Bundling puts the parameters of the path before those of the operation.
                _, key, node = _walked(entry, ["paths", path, "parameters"])
                shared = len(node.value) if key.value == "parameters" else 0
                own = [method] if number >= shared else []
                number -= shared if own else 0
                return entry, ["paths", path, *own, "parameters", number, *rest]
        return entry, at


@cache
def _nodes(file: Path) -> yaml.Node:
    """The root of a file of the contract."""
    root = yaml.compose(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    assert root is not None
    return root


def _walked(file: Path, place: Place) -> tuple[Path, yaml.Node, yaml.Node]:
    """File, key and value of a place, with references followed; of an item, it is the value twice.

    If there is no such place, these are those of the closest parent.
    """
    key = node = _nodes(file)
    for step in place:
        while step != "$ref" and (reference := child_of(node, "$ref")):
            name, _, fragment = str(reference[1].value).partition("#")
            target = (file.parent / name).resolve() if name else file
            file, key, node = _walked(target, [*unescaped(fragment)])
        found = child_of(node, step)
        if found is None:
            break
        key, node = found
    return file, key, node
