"""Whole states as files in a directory: written once, synced before anything refers to them, sealed by a sum.

And the lock of a directory.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from zlib import crc32

import orjson

NEW = ".new"  # ends the name of a state until what refers to it is on the disk
_END = b'{"end":'


_OF_THE_DISK = frozenset((3, 5, 8, 10, 13, 14))  # SQLite's codes for rights, locks, input and output, and no room


class StoreError(Exception):
    """A directory that cannot be used, with the reason."""


class StateError(StoreError):
    """A state that is not there or not whole."""

    def __init__(self, path: Path, name: str, reason: str) -> None:
        super().__init__(f"--store {path}: states/{name} {reason}.")
        self.reason = reason


def is_of_the_disk(error: sqlite3.Error) -> bool:
    """Whether the disk, or the rights to it, are what SQLite fails for."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _OF_THE_DISK


@contextmanager
def opening(path: Path) -> Iterator[None]:
    """Have what goes wrong in a directory that is being opened be a StoreError of one line."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"--store {path}: it cannot be used ({error.strerror or error}).") from None
    except sqlite3.Error as error:
        if is_of_the_disk(error):
            raise StoreError(f"--store {path}: it cannot be used ({error}).") from None
        raise StoreError(f"--store {path}: this is no store of sandboxes, or it is damaged ({error}).") from None


class States:
    """The states of one directory, each under a number as its name."""

    def __init__(self, path: Path) -> None:
        """`path` is the directory, in which they have one of their own."""
        self.path, self._bases, self._number = path, path / "states", 0

    def begin(self) -> None:
        """Have the directory of the states."""
        self._bases.mkdir(mode=0o700, exist_ok=True)

    def names(self) -> set[str]:
        """The names of the files that are there, but for states that were still written when a process ended."""
        return (
            {file.name for file in self._bases.iterdir() if not file.name.endswith(NEW)}
            if self._bases.exists()
            else set()
        )

    def sweep(self, wanted: Container[str], freed: Container[str]) -> None:
        """Delete the states that nothing refers to any more, and those that an earlier process did not finish."""
        for file in self._bases.iterdir():
            name = file.name.removesuffix(NEW)
            self._number = max(self._number, int(name) if name.isdecimal() else 0)
            if name in freed or (name.isdecimal() and name != file.name and name not in wanted):
                file.unlink()
            elif name != file.name and name in wanted:
                file.rename(self._bases / name)

    def settle(self, name: str) -> None:
        """A state is for good: what refers to it is on the disk."""
        with suppress(FileNotFoundError):  # it went meanwhile
            (self._bases / (name + NEW)).rename(self._bases / name)

    def remove(self, name: str) -> None:
        """Delete a state."""
        for file in (self._bases / name, self._bases / (name + NEW)):
            file.unlink(missing_ok=True)

    def fault(self, name: str) -> str | None:
        """What is wrong with a state, if anything is."""
        try:
            for _ in self.read_base(name):
                pass
        except (StoreError, ValueError, LookupError, TypeError) as error:
            return error.reason if isinstance(error, StateError) else "is damaged"
        return None

    def next_base(self) -> str:
        """The name for one more state."""
        self._number += 1
        return str(self._number)

    def write_base(self, name: str, lines: Iterable[bytes]) -> int:
        """Write a state down, in whatever thread; it is on the disk when this is done. Answers its bytes."""
        file, seal, size = self._bases / (name + NEW), 0, 0
        try:
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
        except OSError:
            file.unlink(missing_ok=True)  # what is there of it takes room that the disk may not have
            raise
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
            with self._file(name).open("rb", buffering=1 << 20) as file:
                for line in file:
                    if line.startswith(_END):
                        if orjson.loads(line)["end"] != seal:
                            break
                        return
                    line = line[:-1]
                    seal = crc32(line, seal)
                    yield line
        except OSError as error:
            raise StateError(self.path, name, f"cannot be read ({error.strerror or error})") from None
        raise StateError(self.path, name, "is damaged")

    def _file(self, name: str) -> Path:
        file, new = self._bases / name, self._bases / (name + NEW)
        return new if new.exists() and not file.exists() else file


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
