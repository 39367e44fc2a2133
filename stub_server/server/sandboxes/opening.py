"""Reads sandboxes and their snapshots from a store."""

from collections.abc import Iterable, Sequence
from random import Random

import orjson

from ...core.record import Body
from ...storage import sql
from ...storage.admitting import admit
from ...storage.exports import adopted
from ...storage.fitting import Fitting
from ...storage.lines import Reader
from ...storage.package import BadFile
from ...storage.sql import Damage, Kept, Session, StoreError
from ...storage.state import Snapshot
from .commits import Stored
from .entry import Entry
from .making import SandboxFactory


def opened(
    factory: SandboxFactory, session: Session, number: int, kept: Kept, holder: int
) -> tuple[Stored, Sequence[Snapshot]]:
    """A sandbox, and its snapshots.

    Raises StoreError, and Damage where they are not as they were written.
    """
    about, shared, size = orjson.loads(kept.about), Body(), 0
    snapshots: list[tuple[Body, Reader]] = []
    try:
        for named in sql.states(session, number):
            head = orjson.loads(named.about)
            contract = head["contract"]
            if not named.name and contract != about["contract"]:
                contract = ""  # of several, with what follows
            reader = _reader(factory, about["generation"], contract, shared)
            _read(reader, sql.lines(session, named.state))
            if named.name:
                snapshots.append((head, reader))
            else:
                own, base = reader, named
                size = _read(own, sql.steps_of(session, number, kept, base))
        found = admit(own, snapshots, factory.secret, trusted=True)
    except ValueError as error:
        if not isinstance(error, BadFile) or error.kind == "damaged":
            raise Damage(f"its lines cannot be read: {error}") from None
        raise StoreError(
            "\n  ".join(("does not fit the contract that is served:", *error.reasons))
        ) from None
    sandbox = found.sandbox
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
    )
    if about["contract"] != factory.contract:
        about["contract"] = ""
    newest = kept.newest, kept.chain
    stored = Stored(entry, number, about["contract"], base.state.size, *newest, newest, size)
    return stored, found.snapshots


def _reader(factory: SandboxFactory, generation: str, contract: str, shared: Body) -> Reader:
    """A reader of lines of this contract: those of another than the served one are converted to it
    and validated.
    """
    fitting = None
    if contract != factory.contract:
        fitting = Fitting(factory.rules, factory.shapes, contract)
    return Reader(factory.carried(generation), adopted(factory.secret, anew=False), fitting, shared)


def _read(reader: Reader, lines: Iterable[bytes]) -> int:
    """Read lines; returns how many bytes they have. Raises ValueError."""
    size = 0
    for line in lines:
        size += len(line)
        ((kind, body),) = orjson.loads(line).items()
        reader.read(kind, body)
    return size
