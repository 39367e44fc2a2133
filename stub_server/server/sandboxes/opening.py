"""Reads sandboxes and their snapshots from a store."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import orjson

from ...core.record import Body
from ...storage import sql
from ...storage.admitting import admitted
from ...storage.database import Damage, Kept, KeptState, Session, StoreError
from ...storage.exports import adopted
from ...storage.fitting import Fitting
from ...storage.package import BadFile
from ...storage.reading import Reader
from ...storage.state import Snapshot
from .entry import Entry
from .making import SandboxFactory
from .pending import Stored


def opened(
    factory: SandboxFactory, session: Session, number: int, kept: Kept, holder: int
) -> tuple[Stored, Sequence[Snapshot]]:
    """A sandbox, and its snapshots.

    Raises StoreError, and Damage where they are not as they were written.
    """
    about, shared = orjson.loads(kept.about), Body()
    empty, rewrite = factory.carried(about["generation"]), adopted(anew=False)

    def begin(head: Body) -> Reader:
        contract, fitting = head.pop("contract", about["contract"]), None
        if contract != factory.contract:
            fitting = Fitting(factory.rules, contract)
        return Reader(empty, rewrite, fitting, shared)

    try:
        states = sql.states(session, number)
        sandbox, snapshots, _ = admitted(_lines(session, number, kept, states), begin, trusted=True)
    except ValueError as error:
        raise _unreadable(error) from None
    if kept.newest or holder:  # no ids of requests that an earlier process has given
        sandbox.ids.requests = Random(
            f"{sandbox.origin.seed}/requests/{kept.name}/{kept.newest}/{holder}"
        )
    sandbox.status.held_before = about["held"]
    entry = Entry(
        sandbox,
        about["parent"],
        about["on_first_use"],
        kept.created_at,
        kept.last_used_at,
        kept.expires_at,
        *factory.belongings(),
        about["incarnation"],
        about["origin_events"],
        keys=sql.keys_of(session, number),
    )
    # what follows is for the served contract: then its lines are of several, which has no name
    contract = about["contract"] if about["contract"] == factory.contract else ""
    base, size = states[0], sql.size_of_steps(session, number)
    stored = Stored(entry, number, contract, base.step, base.size, kept.chain, kept.newest, size)
    return stored, snapshots


def _lines(
    session: Session, number: int, kept: Kept, states: Sequence[KeptState]
) -> Iterator[tuple[str, Any]]:
    """The lines of a sandbox, and then of its snapshots, as those of a file. Raises Damage."""
    for state in states:
        if state.name:
            yield "snapshot", orjson.loads(state.about)
        for line in sql.lines(session, state):
            yield from orjson.loads(line).items()
        if not state.name:
            for line in sql.steps_of(session, number, kept, state):
                yield from orjson.loads(line).items()


def _unreadable(error: ValueError) -> Exception:
    """What is raised where lines are damaged, or do not fit the contract."""
    if not isinstance(error, BadFile) or error.kind == "damaged":
        return Damage(f"its lines cannot be read: {error}")
    reasons = "\n  ".join(error.reasons)
    return StoreError(f"does not fit the contract that is served:\n  {reasons}")
