"""Fewer cases: what `pytest --short` and `pytest --sample` leave out.

The short run leaves out what is marked `check`, and keeps eight cases of each parametrized test.
The sample keeps four cases of each test that is marked `matrix`, and a third of the files with the
mark `turn`: other ones with every commit.
"""

import math
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

import pytest

from .commit import commit

KEPT = 8
SAMPLED = 4
TURNS = 3


def some(kept: int, cases: Iterable[Any]) -> list[Any]:
    """Cases that take a second or more each: so many of them, evenly chosen, and the others marked
    for the night.
    """
    every = list(cases)
    chosen = {number * len(every) // kept for number in range(kept)}
    return [case if number in chosen else _at_night(case) for number, case in enumerate(every)]


def chosen(kept: int, names: Iterable[str]) -> list[str]:
    """So many of the names, other ones with every commit: for what is asked in one run of
    another program.
    """
    return sorted(names, key=lambda name: sha256(f"{commit()} {name}".encode()).digest())[:kept]


def _at_night(case: Any) -> Any:
    return pytest.param(*(case if type(case) is tuple else (case,)), marks=pytest.mark.night)


def split(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """What the short run keeps, and what it leaves out: the cases with the lowest digests of their
    names are kept.
    """
    unmarked = [item for item in items if not item.get_closest_marker("check")]
    kept = _lowest(unmarked, KEPT, _digest)
    return [item for item in items if item in kept], [item for item in items if item not in kept]


def sample(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """What `make check` keeps, and what it leaves for other commits and the night."""
    matrices = [item for item in items if item.get_closest_marker("matrix")]
    salt = commit()
    left = set(matrices) - _lowest(matrices, SAMPLED, lambda item: _digest(item, salt))
    in_turn = [item for item in items if item.get_closest_marker("turn")]
    files = {_file(item) for item in in_turn}
    now = chosen(math.ceil(len(files) / TURNS), files)
    left |= {item for item in in_turn if _file(item) not in now}
    return [item for item in items if item not in left], [item for item in items if item in left]


def _lowest(
    items: Iterable[pytest.Item], kept: int, digest: Callable[[pytest.Item], bytes]
) -> set[pytest.Item]:
    """Of each test the cases with the lowest digests."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return {item for each in cases.values() for item in sorted(each, key=digest)[:kept]}


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _digest(item: pytest.Item, salt: str = "") -> bytes:
    return sha256(f"{salt} {item.nodeid}".encode()).digest()
