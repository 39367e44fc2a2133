"""Whole states as files in a directory: written once, synced before anything refers to them, sealed by a sum.

And the lock of a directory.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from zlib import crc32

import orjson

_END = b'{"end":'


class StoreError(Exception):
    """A directory that cannot be used, with the reason."""


class States:
    """The states of one directory, each under a number as its name."""

    def __init__(self, path: Path) -> None:
        """`path` is the directory, in which they have one of their own."""
        self.path, self._bases, self._number = path, path / "states", 0

    def begin(self) -> None:
        """Have the directory of the states."""
        self._bases.mkdir(mode=0o700, exist_ok=True)

    def sweep(self, wanted: Container[str]) -> None:
        """Delete what an earlier process has left, but for the states that are wanted."""
        for file in self._bases.iterdir():
            if file.name not in wanted:
                file.unlink()
            else:
                self._number = max(self._number, int(file.name))

    def next_base(self) -> str:
        """The name for one more state."""
        self._number += 1
        return str(self._number)

    def write_base(self, name: str, lines: Iterable[bytes]) -> int:
        """Write a state down, in whatever thread; it is on the disk when this is done. Answers its bytes."""
        file, seal, size = self._bases / name, 0, 0
        with file.open("xb", buffering=1 << 20) as out:
            os.chmod(file, 0o600)
            for line in lines:
                out.write(line + b"\n")
                seal = crc32(line, seal)
                size += len(line) + 1
            out.write(orjson.dumps({"end": seal}) + b"\n")
            out.flush()
            os.fsync(out.fileno())
        self._sync_names()
        return size

    def _sync_names(self) -> None:
        if hasattr(os, "O_DIRECTORY"):  # elsewhere a name is written with its file
            names = os.open(self._bases, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(names)
            finally:
                os.close(names)

    def read_base(self, name: str) -> Iterator[bytes]:
        """The lines of a state. Raises StoreError at its end when they are not those that were written."""
        seal = 0
        try:
            with (self._bases / name).open("rb", buffering=1 << 20) as file:
                for line in file:
                    if line.startswith(_END):
                        if orjson.loads(line)["end"] != seal:
                            break
                        return
                    line = line[:-1]
                    seal = crc32(line, seal)
                    yield line
        except OSError as error:
            raise StoreError(f"--store {self.path}: states/{name}: {error.strerror or error}.") from None
        raise StoreError(f"--store {self.path}: states/{name} is damaged. Without its world, remove it from the store.")


def locked(path: Path) -> sqlite3.Connection:
    """A lock that the system takes back when the process ends, however it does. Raises StoreError."""
    path.touch(0o600)
    lock = sqlite3.connect(path, 0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("begin exclusive")
    except sqlite3.OperationalError as error:
        lock.close()
        if "locked" not in str(error):
            raise
        message = f"--store {path.parent}: another server uses this directory. Stop it, or give each one its own."
        raise StoreError(message) from None
    return lock
