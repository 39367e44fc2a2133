"""Checks every law on a live sandbox."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

from ..engine.sandbox import Sandbox
from .laws import LAWS, PAUSE, Inspected

SHOWN = 20
BUDGET = 20_000  # records of a table that a costly law parses; of larger tables it takes every n-th


class Finding(NamedTuple):
    """The result of one law: how many records were checked, and the violations.

    A law of seeds alone `applies` to no sandbox that has changed.
    """

    id: int
    name: str
    ok: bool
    checked: int
    violations: list[str]
    applies: bool = True


def broken(sandbox: Sandbox) -> Iterator[str]:
    """What breaks laws in a sandbox that came from a file, of all its merchants."""
    for store in sandbox.stores.values():
        for law in LAWS:
            if law.of_files and not law.seeds_only:
                found = law.look(Inspected(sandbox, store, BUDGET))
                yield from (f"{law.name}: {violation}" for violation in found if violation)


def checking(sandbox: Sandbox, seeded: bool) -> Generator[None, None, list[Finding]]:
    """Check all laws on the seeded merchant's records, with a pause after each. The sandbox must not change meanwhile.

    `seeded` says that nothing has changed since the seeding: otherwise laws with `seeds_only` pass unchecked.
    """
    inspected = Inspected(sandbox, sandbox.store, BUDGET)
    checks = []
    for number, law in enumerate(LAWS, start=1):
        if law.seeds_only and not seeded:
            checks.append(Finding(number, law.name, True, 0, [], applies=False))
            continue
        violations: list[str] = []
        checked = 0
        for violation in law.look(inspected):
            yield
            if violation is PAUSE:
                continue
            checked += 1
            if violation and len(violations) < SHOWN:
                violations.append(violation)
        checks.append(Finding(number, law.name, not violations, checked, violations))
    return checks
