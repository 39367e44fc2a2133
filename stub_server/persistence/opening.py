"""Makes sandboxes and their snapshots of what an earlier process has stored."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from random import Random
from typing import NamedTuple

import orjson

from ..engine.sandbox import SILENT, Sandbox
from ..files.admitting import DROPPING, LeftOut, admit
from ..files.fitting import Fitting, Shapes
from ..files.package import BadFile
from ..files.parts import Unreadable
from ..files.reading import Reader
from ..files.secrets import adopted
from ..files.state import capture
from ..kernel.record import Body
from ..worlds.entry import Origin
from ..worlds.making import Maker
from ..worlds.snapshots import Snapshot, snapshot_of
from . import store
from .rows import Damage, Kept, KeptSnapshot, KeptState, StoreError
from .store import Batch, Head, Session


class Opened(NamedTuple):
    """A sandbox: its number, its row, itself, the state that it begins with, the bytes of steps since, snapshots."""

    number: int
    kept: Kept
    sandbox: Sandbox
    state: KeptState
    since: int
    snapshots: list[Snapshot]


class Opener:
    """Opens sandboxes of one store on one server."""

    def __init__(self, maker: Maker, origin: Origin, contract: str) -> None:
        """What is of another contract than `contract` is held to the one that is served, and converted."""
        self._maker, self._origin, self._contract = maker, origin, contract
        self._shapes = Shapes(origin.seeding.fixtures)

    def open(self, session: Session, number: int, kept: Kept, holder: int) -> Opened:
        """A sandbox with its snapshots. Raises StoreError, and Damage where they are not as they were written."""
        origin, own = self._origin, self._reader(kept.name, kept.contract, self._origin.history)
        base, digests = store.state(session, kept.state)
        _read(own, store.lines_of(session, digests))
        since = _read(own, store.steps_of(session, number, kept, base))
        try:
            found = admit(
                own,
                [self._snapshot(session, kept.name, told) for told in store.snapshots(session, number, kept)],
                partial(self._maker.carried, kept.name or ""),
                origin.secret,
                lambda clock: clock,
                drop_unfit=origin.drop_unfit,
                trusted=True,
            )
        except BadFile as error:
            if error.kind == "damaged":
                raise Damage(error.reasons[0]) from None
            advice = () if origin.drop_unfit else (DROPPING,)
            raise StoreError(
                "\n  ".join(("does not fit the contract that is served:", *error.reasons, *advice))
            ) from None
        sandbox = found.sandbox
        sandbox.log.refill(found.steps)
        if kept.newest or holder:  # no ids of requests that an earlier process has given
            sandbox.ids.requests_from(Random(f"{sandbox.seed}/requests/{kept.name}/{kept.newest}/{holder}"))
        sandbox.held = SILENT if kept.held is None else kept.held
        if found.left_out is not None:
            found.left_out.tell(f"the sandbox {kept.name}")
            kept, base, since = (
                *self._begin_anew(session, Head(number, kept.newest, kept), sandbox, found.left_out, holder),
                0,
            )
        return Opened(number, kept, sandbox, base, since, [snapshot_of(told) for told in found.snapshots])

    def _begin_anew(
        self, session: Session, head: Head, sandbox: Sandbox, left_out: LeftOut, holder: int
    ) -> tuple[Kept, KeptState]:
        """Have a sandbox of which something was left out be stored as it is now, without history."""
        number, newest, kept = head
        written = store.write_state(session, number, capture(sandbox), kept.chain)
        changes = [store.state_used(kept.state, is_used=False), store.state_used(written.id, is_used=True)]
        for name in left_out.snapshots:
            changes += store.snapshot_ended(number, name)
        kept = kept._replace(state=written.id, contract=self._contract)
        store.commit(session, Batch(changes, [Head(number, newest, kept)], is_one=True), holder)
        return kept, written

    def _reader(self, name: str | None, contract: str, keep: int = 0) -> Reader:
        rewrite = adopted(self._origin.secret, name or "", anew=False)
        same = contract == self._contract
        return Reader(rewrite, keep, None if same else Fitting(self._origin.rules, self._shapes, contract))

    def _snapshot(self, session: Session, name: str | None, told: KeptSnapshot) -> tuple[Body, Reader]:
        reader = self._reader(name, told.contract)
        _read(reader, store.lines_of(session, store.state(session, told.state)[1]))
        return told._asdict() | {"description": orjson.loads(told.description)}, reader


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
