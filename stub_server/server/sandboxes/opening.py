"""Reads sandboxes and their snapshots from a store."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

import orjson

from ...core.record import Body
from ...storage import sql
from ...storage.admitting import ReadSnapshot, admit
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
    about = orjson.loads(kept.about)
    try:
        states = _read_states(factory, session, number, kept, about)
        found = admit(states.own, states.snapshots, trusted=True)
    except ValueError as error:
        raise _unreadable(error) from None
    sandbox = found.sandbox
    if kept.newest or holder:  # no ids of requests that an earlier process has given
        sandbox.ids.requests = Random(
            f"{sandbox.origin.seed}/requests/{kept.name}/{kept.newest}/{holder}"
        )
    sandbox.status.held_before = about["held"]
    # what follows is for the served contract: then its lines are of several, which has no name
    contract = about["contract"] if about["contract"] == factory.contract else ""
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
    stored = Stored(
        entry,
        number,
        contract,
        states.base.step,
        states.base.size,
        kept.newest,
        kept.chain,
        kept.newest,
        states.steps_size,
    )
    return stored, found.snapshots


class _States(NamedTuple):
    """The lines of a sandbox and of its snapshots, read. `base` is the state that its steps begin
    at, `steps_size` how many bytes they have.
    """

    own: Reader
    snapshots: list[ReadSnapshot]
    base: KeptState
    steps_size: int


def _read_states(
    factory: SandboxFactory, session: Session, number: int, kept: Kept, about: Body
) -> _States:
    """Raises ValueError."""
    shared = Body()
    snapshots: list[ReadSnapshot] = []
    for named in sql.states(session, number):
        head = orjson.loads(named.about)
        contract = head.pop("contract")
        if not named.name and contract != about["contract"]:
            contract = ""  # of several, with what follows
        reader = _reader(factory, about["generation"], contract, shared)
        _read(reader, sql.lines(session, named.state))
        if named.name:
            snapshots.append((head, reader))
        else:
            own, base = reader, named
            size = _read(own, sql.steps_of(session, number, kept, base))
    return _States(own, snapshots, base.state, size)


def _unreadable(error: ValueError) -> Exception:
    """What is raised where lines are damaged, or do not fit the contract."""
    if not isinstance(error, BadFile) or error.kind == "damaged":
        return Damage(f"its lines cannot be read: {error}")
    reasons = "\n  ".join(error.reasons)
    return StoreError(f"does not fit the contract that is served:\n  {reasons}")


def _reader(factory: SandboxFactory, generation: str, contract: str, shared: Body) -> Reader:
    """A reader of lines of this contract: those of another than the served one are converted to it
    and validated.
    """
    fitting = None
    if contract != factory.contract:
        fitting = Fitting(factory.rules, contract)
    return Reader(factory.carried(generation), adopted(anew=False), fitting, shared)


def _read(reader: Reader, lines: Iterable[bytes]) -> int:
    """Read lines; returns how many bytes they have. Raises ValueError."""
    size = 0
    for line in lines:
        size += len(line)
        ((kind, body),) = orjson.loads(line).items()
        reader.read(kind, body)
    return size
