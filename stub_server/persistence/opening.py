"""Makes sandboxes and their snapshots of what an earlier process has stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import orjson

from ..engine.sandbox import SILENT, Sandbox
from ..files.building import build
from ..files.fitting import Shapes, misfits
from ..files.parts import Unreadable
from ..files.pinned import Pinned, Shared, pin
from ..files.reading import Reader
from ..files.secrets import adopted
from ..files.state import WorldState
from ..worlds.entry import Origin
from ..worlds.making import Maker
from ..worlds.snapshots import Snapshot, snapshot_of
from . import store
from .rows import Damage, Kept, KeptState, StoreError
from .store import Session


class Opened(NamedTuple):
    """A sandbox, the state that it was opened from, the bytes of the steps since, and its snapshots."""

    sandbox: Sandbox
    state: KeptState
    since: int
    snapshots: list[Snapshot]


class Opener:
    """Opens sandboxes of one store on one server."""

    def __init__(self, maker: Maker, origin: Origin, contract: str) -> None:
        """Records that were held to another contract than `contract` are held to the one that is served."""
        self._maker, self._origin, self._contract = maker, origin, contract

    def open(self, session: Session, number: int, kept: Kept) -> Opened:
        """A sandbox with its snapshots. Raises StoreError, and Damage where they are not as they were written."""
        name, origin = kept.name or "", self._origin
        reader = Reader(adopted(origin.secret, name, anew=False), origin.history)
        base, digests = store.state(session, kept.state)
        _read(reader, store.lines_of(session, digests))
        reader.skip = max(0, kept.newest - base.step - origin.history)
        since = _read(reader, store.steps_of(session, number, kept, base))
        steps = reader.steps[-origin.history :] if origin.history else []
        if kept.contract != self._contract:
            reasons = misfits(origin.rules, Shapes(origin.seeding.fixtures), reader.state, steps)
            _check(f"the sandbox {name}", reasons)
        sandbox = self._maker.carried(name, reader.state.scenario, reader.state.seed)
        build(sandbox, reader.state, origin.secret, reader.state.clock)
        sandbox.log.refill(steps)
        sandbox.held = SILENT if kept.held is None else kept.held
        return Opened(sandbox, base, since, list(self._snapshots(session, number, kept, reader.state)))

    def _snapshots(self, session: Session, number: int, kept: Kept, state: WorldState) -> Iterator[Snapshot]:
        pinned, shared = store.snapshots(session, number, kept), Shared()
        name, origin = kept.name or "", self._origin
        if pinned:
            shared.share(state)
        for told in pinned:
            reader = Reader(adopted(origin.secret, name, anew=False))
            _read(reader, store.lines_of(session, store.state(session, told.state)[1]))
            was = reader.state
            if told.contract != self._contract:
                reasons = misfits(origin.rules, Shapes(origin.seeding.fixtures), was, ())
                _check(f"the snapshot {told.name} of the sandbox {name}", reasons)
            shared.share(was)
            sandbox = self._maker.carried(name, was.scenario, was.seed)
            pin(sandbox, was, origin.secret)
            yield snapshot_of(Pinned(told.name, orjson.loads(told.description), told.now, told.created_at, sandbox))


def _check(what: str, reasons: list[str]) -> None:
    if reasons:
        raise StoreError(f"{what} does not fit the contract that is served:\n  " + "\n  ".join(reasons))


def _read(reader: Reader, lines: Iterable[bytes]) -> int:
    """Read lines; answers how many bytes they have. Raises Damage."""
    size = 0
    try:
        for line in lines:
            size += len(line)
            ((kind, body),) = orjson.loads(line).items()
            reader.read(kind, body)
    except (Unreadable, ValueError) as error:
        raise Damage(f"its lines cannot be read: {error}") from None
    return size
