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
        touch = self._overlays.last_touch(unescaped(pointer)) or ""
        name, _, line = touch.rpartition(":")
        path = Path(name)
        if not line.isdecimal():  # or of an overlay that cannot be read again, such as a pipe
            path, line = self._in_files(pointer)
            name = path.relative_to(self._folder.parent).as_posix()
        number = int(line)
        text, below = [*path.read_text(encoding="utf-8").splitlines(), ""][number - 1 : number + 1]
        return Line(name, number, cut(text + below if text.endswith(":") else text))

    def _in_files(self, pointer: str) -> tuple[Path, str]:
        """The file of the contract that has what a pointer leads to, and the line."""
        file, at = self._folder / "openapi.yaml", located(self.document, pointer)[0]
        match at:
            case ["components", kind, name, *steps]:
                for path in (self._folder / "components").rglob("*.yaml"):
                    is_of_kind = kind in (*path.parts, path.stem)
                    if is_of_kind and child_of(_nodes(path), name) is not None:
                        file, at = path, [name, *steps]
            case ["paths", path, method, "parameters", int(number), *steps]:
                # Bundling puts the parameters of the path before those of the operation.
                every = self.document.raw["paths"][path][method]["parameters"]
                at = ["paths", path, method, "parameters", number - len(every), *steps]
        return _walked(file, at)


@cache
def _nodes(file: Path) -> yaml.Node:
    """The root of a file of the contract."""
    root = yaml.compose(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    assert root is not None
    return root


def _walked(file: Path, place: Place) -> tuple[Path, str]:
    """File and line of the key or item at a place, with references followed.

    If there is no such place, these are those of the closest parent.
    """
    key = node = _nodes(file)
    for step in place:
        while step != "$ref" and (reference := child_of(node, "$ref")):
            name, _, fragment = str(reference[1].value).partition("#")
            file = (file.parent / name).resolve() if name else file
            node = _nodes(file)
            for inner in unescaped(fragment):
                key, node = child_of(node, inner) or (key, node)
        found = child_of(node, step)
        if found is None:
            break
        key, node = found
    return file, str(key.start_mark.line + 1)
