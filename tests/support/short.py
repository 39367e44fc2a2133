"""Fewer cases: `pytest --short` leaves out what is marked `check`, and keeps eight cases of each parametrized test."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import pytest

KEPT = 8


def some(kept: int, cases: Iterable[Any]) -> list[Any]:
    """Cases that take a second or more each: so many of them, evenly chosen, and the others marked for the night."""
    every = list(cases)
    chosen = {number * len(every) // kept for number in range(kept)}
    return [case if number in chosen else _at_night(case) for number, case in enumerate(every)]


def _at_night(case: Any) -> Any:
    return pytest.param(*(case if type(case) is tuple else (case,)), marks=pytest.mark.night)


def split(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """What the short run keeps, and what it leaves out: the cases with the lowest digests of their names are kept."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not item.get_closest_marker("check"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {item for each in cases.values() for item in sorted(each, key=_digest)[:KEPT]}
    return [item for item in items if item in kept], [item for item in items if item not in kept]


def _digest(item: pytest.Item) -> bytes:
    return sha256(item.nodeid.encode()).digest()
