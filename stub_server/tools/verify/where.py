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
        if line.isdecimal():
            path, number = Path(name), int(line)
        else:  # or of an overlay that cannot be read again, such as a pipe
            path, number = self._in_files(pointer)
            name = f"{self._folder.name}/{path.relative_to(self._folder).as_posix()}"
        text, below = [*path.read_text(encoding="utf-8").splitlines(), ""][number - 1 : number + 1]
        if text.endswith(":"):
            text += below
        return Line(name, number, cut(text))

    def _in_files(self, pointer: str) -> tuple[Path, int]:
        """The file of the contract that has what a pointer leads to, and the line."""
        entry, at = self._folder / "openapi.yaml", located(self.document, pointer)[0]
        match at:
            case ["components", kind, name, *steps]:
                for path in (self._folder / "components").rglob("*.yaml"):
                    is_of_kind = kind in (*path.parts, path.stem)
                    if is_of_kind and child_of(_nodes(path), name) is not None:
                        return _walked(path, [name, *steps])
            case ["paths", path, method, "parameters", int(number), *steps]:
                # Bundling puts the parameters of the path before those of the operation.
                every = self.document.raw["paths"][path][method]["parameters"]
                own = ["paths", path, method, "parameters", number - len(every), *steps]
                return _walked(entry, own)
        return _walked(entry, at)


@cache
def _nodes(file: Path) -> yaml.Node:
    """The root of a file of the contract."""
    root = yaml.compose(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    assert root is not None
    return root


def _walked(file: Path, place: Place) -> tuple[Path, int]:
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
    return file, key.start_mark.line + 1
