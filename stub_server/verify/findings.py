"""What one probe found, and the divergences that findings of one cause are together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

CLASSES = (
    "transport",
    "server-error",
    "missing-operation",
    "auth",
    "scope",
    "stricter",
    "laxer",
    "not-persisted",
    "not-deleted",
    "filter",
    "sort",
    "paging",
    "uniqueness",
    "idempotency",
    "lifecycle",
    "reference",
    "figures",
    "value",
    "wrong-status",
    "undocumented-status",
    "error-code",
    "schema",
    "undocumented-field",
    "missing-header",
)
"""The first that fits names what a probe found; only those of `BESIDE` may stand beside another."""
BESIDE = frozenset(("undocumented-field", "missing-header"))
GROUPS = ("says_yes", "says_no", "remembers", "finds", "moves")


class Shown(NamedTuple):
    """A request for people. Nothing in it is a secret."""

    method: str
    path: str
    curl: str


class Said(NamedTuple):
    """An answer for people: its status, and what of the body matters. Status 0 is no answer."""

    status: int
    excerpt: str


@dataclass(frozen=True, slots=True)
class Finding:
    """In what one exchange departs.

    `kind` is one of `CLASSES`, `operation` an operationId or empty where there is none, `group` one of `GROUPS`.
    `pointer` leads to the line of the contract (`#/paths/…`), `cause` says in a few words what departs, without values
    that differ between runs: findings of one kind with the same pointer, else the same cause, are one divergence.
    `overlay` has the `actions` of an OpenAPI Overlay that corrects the contract, or is None.
    """

    kind: str
    operation: str
    group: str
    pointer: str
    cause: str
    title: str
    request: Shown
    target: Said
    expected: Said
    overlay: dict[str, Any] | None = None


@dataclass(slots=True)
class Divergence:
    """One thing in which the target departs. `basis` is `documented` or `assumed`, by the contract's `x-basis`.

    `operations` are in the contract's order, `operation` is the first of them. `cases` are the pairs of operation and
    group that it was found in. `overlay` has the `actions` of an OpenAPI Overlay that corrects the contract.
    """

    fingerprint: str
    kind: str
    operation: str
    operations: list[str]
    title: str
    basis: str
    pointer: str
    count: int
    request: Shown
    target: Said
    expected: Said
    overlay: dict[str, Any] | None = None
    cases: list[tuple[str, str]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class Row:
    """How the probes of one operation ended: for each of `GROUPS` `ok`, `diverges`, `unreached` or `none`."""

    operation: str
    groups: dict[str, str] = field(default_factory=dict)


class Unreached(NamedTuple):
    """A documented (operation, status) that no probe can have answered, and why."""

    operation: str
    status: int
    reason: str


@dataclass(slots=True)
class Report:
    """What came of a run. `mode` is `read`, `write`, `har` or `proxy`; `coverage` is per cent; `exit` is 0 to 3.

    `contract` names version and digest of the contract, `hidden` counts the divergences that a baseline knows.
    """

    target: str
    contract: str
    mode: str
    seed: int
    seconds: float
    requests: int
    exit: int
    coverage: float
    rows: list[Row]
    unreached: list[Unreached]
    divergences: list[Divergence]
    left_behind: list[str] = field(default_factory=list)
    hidden: int = 0
