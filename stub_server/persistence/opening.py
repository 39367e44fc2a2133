"""Reads sandboxes and their snapshots from a store."""

from collections.abc import Iterable, Sequence
from random import Random

import orjson

from ..engine.sandbox import SILENT, Sandbox
from ..files.admitting import admit
from ..files.exports import adopted
from ..files.fitting import Fitting
from ..files.lines import Reader
from ..files.package import BadFile
from ..files.state import Snapshot
from ..kernel.record import Body
from ..sandboxes.entry import Entry
from ..sandboxes.making import SandboxFactory
from . import sql
from .commits import Stored
from .sql import Damage, Kept, Session, StoreError


def opened(
    factory: SandboxFactory, session: Session, number: int, kept: Kept, holder: int
) -> tuple[Stored, Sequence[Snapshot]]:
    """A sandbox, and its snapshots. Raises StoreError, and Damage where they are not as they were written."""
    own, snapshots = _reader(factory, kept.generation, kept.contract), list[tuple[Body, Reader]]()
    base, lines = sql.state(session, kept.state)
    try:
        _read(own, lines)
        since = _read(own, sql.steps_of(session, number, kept, base))
        for snapshot in sql.snapshots(session, number, kept):
            reader = _reader(factory, kept.generation, snapshot.contract)
            _read(reader, sql.state(session, snapshot.state)[1])
            snapshots.append((snapshot._asdict() | {"description": orjson.loads(snapshot.description)}, reader))
        found = admit(own, snapshots, factory.secret, trusted=True)
    except ValueError as error:
        if not isinstance(error, BadFile) or error.kind == "damaged":
            raise Damage(f"its lines cannot be read: {error}") from None
        raise StoreError("\n  ".join(("does not fit the contract that is served:", *error.reasons))) from None
    sandbox = found.sandbox
    if kept.newest or holder:  # no ids of requests that an earlier process has given
        sandbox.ids.requests = Random(f"{sandbox.seed}/requests/{kept.name}/{kept.newest}/{holder}")
    sandbox.held_before = SILENT if kept.held is None else kept.held
    entry = Entry(
        sandbox,
        kept.parent,
        bool(kept.on_first_use),
        kept.created_at,
        kept.last_used_at,
        kept.expires_at,
        *factory.belongings(),
        kept.incarnation,
        kept.origin_events,
    )
    contract = kept.contract if kept.contract == factory.contract else ""  # of several, with what follows
    newest = kept.newest, kept.chain
    return Stored(entry, number, base, contract, *newest, newest, since), found.snapshots


def _reader(factory: SandboxFactory, generation: str, contract: str) -> Reader:
    """A reader of lines of this contract: those of another than the served one are converted to it and validated."""
    fitting = None if contract == factory.contract else Fitting(factory.rules, factory.shapes, contract)

    def empty(name: str, scenario: str, seed: int) -> Sandbox:
        return factory.carried(name, generation, scenario, seed)

    return Reader(empty, adopted(factory.secret, anew=False), fitting)


def _read(reader: Reader, lines: Iterable[bytes]) -> int:
    """Read lines; returns how many bytes they have. Raises ValueError."""
    size = 0
    for line in lines:
        size += len(line)
        ((kind, body),) = orjson.loads(line).items()
        reader.read(kind, body)
    return size
