"""Reads files given by the user, with limits, so that none can block the start, fill the memory or end the process."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import yaml

from .source import ContractError, Json, parse

MOST_BYTES = 10 * 1024 * 1024
DEEPEST = 100
MOST_NODES = 1_000_000  # an alias counts as many as it refers to


def read_user_file(path: Path) -> Json:
    """A YAML (or JSON) file as data.

    Raises ContractError, one line with file and place, for a file that is not regular, larger than 10 MB, nested deeper
    than 100 levels or of more than a million values, and for all that `source.read` refuses.
    """
    text = read_text(path, str(path))
    check_bounds(text, str(path))
    return parse(text, str(path))


def read_text(path: Path, name: str) -> str:
    """The text of a regular file of at most 10 MB; errors call it by `name`. Raises ContractError."""
    try:
        # A plain open of a FIFO without a writer would block.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ContractError(f"{name}: is not a regular file")
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise ContractError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise ContractError(f"{name}: is not a regular file") from None
    except OSError as error:
        raise ContractError(f"{name}: cannot be read: {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise ContractError(f"{name}: is larger than {MOST_BYTES // 1024 // 1024} MB, the most that is read")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ContractError(f"{name}:{line}: is not UTF-8") from None


def check_bounds(text: str, name: str) -> None:
    """Refuse a text that is nested too deep or stands for too many values. Raises ContractError with name and line.

    What is no YAML is told by who parses it: up to there the text is within the bounds.
    """
    try:
        _walk(text)
    except _Refused as error:
        raise ContractError(f"{name}:{error.line}: {error}") from None
    except yaml.YAMLError:
        return


class _Refused(Exception):
    """A bound is passed on a line."""

    def __init__(self, event: yaml.Event, problem: str) -> None:
        super().__init__(problem)
        self.line = event.start_mark.line + 1 if event.start_mark else 1


def _walk(text: str) -> None:
    """Walk through the events of a text, which takes no recursion. Raises _Refused."""
    sizes: list[int] = [0]  # how many values each open collection has, aliases counted in full
    names: list[str | None] = [None]
    known: dict[str, int] = {}
    for event in _events(text):
        if isinstance(event, yaml.CollectionStartEvent):
            if len(sizes) > DEEPEST:
                raise _Refused(event, f"is nested deeper than {DEEPEST} levels")
            sizes.append(1)
            names.append(event.anchor)
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            size, name = sizes.pop(), names.pop()
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in known:
                raise _Refused(event, f"the alias *{event.anchor} refers to no complete value before it")
            size, name = known[event.anchor], None
        elif isinstance(event, yaml.ScalarEvent):
            size, name = 1, event.anchor
        else:
            continue
        if name is not None:
            known[name] = size
        sizes[-1] += size
        if sizes[-1] > MOST_NODES:
            raise _Refused(event, f"has more than {MOST_NODES:,} values")


def _events(text: str) -> Iterator[yaml.Event]:
    return iter(yaml.parse(text, yaml.CSafeLoader))
