"""The short run, `pytest --short`: what is marked `check` is left out, and each parametrized test keeps eight cases."""

from hashlib import sha256

import pytest

KEPT = 8


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
