"""The laws that the records of a sandbox obey at every moment, checked over a live world."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from ..engine.sandbox import Sandbox
from ..kernel.slices import at_once
from .chronology import CHRONOLOGY
from .inspection import PAUSE, Inspected
from .laws import LAWS

SHOWN = 20
BUDGET = 20_000  # records of a table that one check looks at; past that it takes every n-th


class Finding(NamedTuple):
    """One law: how many records were looked at, and what broke it."""

    id: int
    name: str
    ok: bool
    checked: int
    violations: list[str]


def check(sandbox: Sandbox, seeded: bool) -> list[Finding]:
    """All laws over the seeded merchant's records. `seeded`: nothing has been changed since the seeding, so the laws
    about believable data hold as well; else those count as kept, with nothing looked at.
    """
    return at_once(checking(sandbox, seeded))


def checking(sandbox: Sandbox, seeded: bool) -> Generator[None, None, list[Finding]]:
    """`check`, with a pause after every record. The world must not change meanwhile."""
    world = Inspected(sandbox, sandbox.store, BUDGET)
    checks = []
    for number, law in enumerate((*LAWS, *CHRONOLOGY), start=1):
        if law.seeds_only and not seeded:
            checks.append(Finding(number, law.name, True, 0, []))
            continue
        violations: list[str] = []
        checked = 0
        for violation in law.look(world):
            yield
            if violation is PAUSE:
                continue
            checked += 1
            if violation and len(violations) < SHOWN:
                violations.append(violation)
        checks.append(Finding(number, law.name, not violations, checked, violations))
    return checks
