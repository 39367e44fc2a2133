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
    text = read_text(path)
    try:
        _check_bounds(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise ContractError(f"{path}{f':{mark.line + 1}' if mark else ''}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ContractError(f"{path}: {' '.join(str(error).split())}") from None
    return parse(text, str(path))


def read_text(path: Path) -> str:
    """The text of a regular file of at most 10 MB. Raises ContractError."""
    try:
        # A plain open of a FIFO without a writer would block.
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ContractError(f"{path}: is not a regular file")
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise ContractError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise ContractError(f"{path}: is not a regular file") from None
    except OSError as error:
        raise ContractError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise ContractError(f"{path}: is larger than {MOST_BYTES // 1024 // 1024} MB, the most that is read")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ContractError(f"{path}:{line}: is not UTF-8") from None


def _check_bounds(text: str) -> None:
    """Check depth and number of values on YAML's events, without recursion. Raises MarkedYAMLError with the place."""
    sizes: list[int] = [0]  # how many values each open collection has, aliases counted in full
    names: list[str | None] = [None]
    known: dict[str, int] = {}
    for event in _events(text):
        if isinstance(event, yaml.CollectionStartEvent):
            if len(sizes) > DEEPEST:
                raise _refused(event, f"is nested deeper than {DEEPEST} levels")
            sizes.append(1)
            names.append(event.anchor)
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            size, name = sizes.pop(), names.pop()
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in known:
                raise _refused(event, f"the alias *{event.anchor} refers to no complete value before it")
            size, name = known[event.anchor], None
        elif isinstance(event, yaml.ScalarEvent):
            size, name = 1, event.anchor
        else:
            continue
        if name is not None:
            known[name] = size
        sizes[-1] += size
        if sizes[-1] > MOST_NODES:
            raise _refused(event, f"has more than {MOST_NODES:,} values")


def _events(text: str) -> Iterator[yaml.Event]:
    return iter(yaml.parse(text, yaml.CSafeLoader))


def _refused(event: yaml.Event, problem: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)  # type: ignore[arg-type]
