"""Reads the lines of a sandbox: its state, and the steps that changed it.

A step names what it replaced by id alone, so lines are read in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import itemgetter, lt
from typing import Any

from ..core.clock import ClockState
from ..core.record import Body, Extras, Record, place
from ..core.timers import Timer
from ..engine.lists import Ends, Event, Queue, ReplyKey, Saved
from ..engine.sandbox import Sandbox
from ..engine.step import Cause, Change, Part, SandboxSettings, Standing, Step, Used
from ..engine.tables.store import MOST_MERCHANTS, Merchant, Store
from ..engine.tables.table import encoded
from .fitting import Fitting
from .lines import written
from .package import MISFITS, BadFile, damaged

Rewrite = Callable[[Sandbox, str, Record], Record]
"""(sandbox, table, record) -> the record as it is to be read: with other secrets, where a sandbox
changes hands.
"""
Empty = Callable[[Body], Sandbox]
"""The first line -> a sandbox without records, which may have another name."""

_reply_key: Callable[[list[str]], ReplyKey] = itemgetter(*range(4))
_pair: Callable[[list[Any]], tuple[Any, Any]] = itemgetter(0, 1)  # a usage or a position


class Reader:
    """Reads the lines of one sandbox in their order: its state, then steps, each of which changes
    the state.

    While a record does not fit, records are only checked: what a table does with one that does not
    may take more time than its length allows.
    """

    def __init__(self, empty: Empty, rewrite: Rewrite, fitting: Fitting) -> None:
        """Every version of a record passes through `rewrite`, then `fitting`."""
        self._empty = empty
        self._rewrite = rewrite
        self.fitting = fitting
        # equal versions and events, of which states of one sandbox share each
        self._shared: dict[Any, Any] = {}
        self._sandbox: Sandbox | None = None
        self._store: Store  # that of the merchant whose line was read last
        self._records: list[Record] = []  # of the state, in their order

    @classmethod
    def of(cls, sandbox: Sandbox, rewrite: Rewrite, fitting: Fitting) -> Reader:
        """One that has read a sandbox."""
        reader = cls(lambda body: sandbox, rewrite, fitting)
        reader._sandbox = sandbox
        return reader

    def another(self, contract: str | None) -> Reader:
        """One that reads another state of the sandbox, which is of a contract, or of the same."""
        reader = Reader(self._empty, self._rewrite, self.fitting.another(contract))
        reader._shared = self._shared
        return reader

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox that is read. Raises BadFile where there is none."""
        if self._sandbox is None:
            raise damaged("there is no sandbox in it")
        return self._sandbox

    def read(self, kind: str, body: Any) -> None:
        """Read a line. Raises BadFile."""
        try:
            self._read(kind, body)
            if len(self.sandbox.stores) > MOST_MERCHANTS:  # 200 bytes of one take 40 KB
                raise damaged(f"more than {MOST_MERCHANTS} merchants")
        except BadFile:
            raise
        except MISFITS as error:
            if not self.fitting.fits:  # that is why
                raise BadFile("unfit", *self.fitting.unfit()) from None
            raise damaged(
                f"a line {kind[:40]!r} that cannot be read ({type(error).__name__}: {error})"
            ) from None

    def _read(self, kind: str, body: Any) -> None:
        if kind == "record":
            self._add(body["table"], self._version(body))
        elif kind == "step":
            self._fold(body)
        elif kind == "event":
            self.sandbox.events.exchange(Ends(after=(self._event(body, self._records),)))
        elif kind == "timer":
            self.sandbox.timers.put(Timer(**body))
        elif kind == "reply":
            self.sandbox.replies.exchange(Ends(after=(self._reply(body),)))
        elif kind == "merchant":
            usage = body.pop("usage")
            self._store = self._new_store(body)
            self._store.usage = {key: _pair(used) for key, used in usage.items()}
            self.sandbox.stores[self._store.merchant.id] = self._store
        elif kind == "sandbox":
            self._begin(body)
        else:
            raise damaged(f"a line of an unknown kind, {kind[:40]!r}")

    def _begin(self, body: Body) -> None:
        if self._sandbox is not None:
            raise damaged("two sandboxes where one was expected")
        sandbox = self._empty(body)
        sandbox.log.number = body["step"]
        sandbox.ids.event_salt = int(body["event_salt"], 16)
        sandbox.stand(_standing(body, body["timers_set"], sandbox.settings))
        first_clock = body.get("first_clock")
        sandbox.origin = replace(
            sandbox.origin,
            home=body["home"],
            sample=body["sample"],
            personas=body["personas"],
            seeded_keys=frozenset(body["seeded_keys"]),
            first_settings=SandboxSettings(**body["first_settings"]),
            first_clock=first_clock and _pair(first_clock),
        )
        self._sandbox = sandbox

    def _new_store(self, merchant: Body) -> Store:
        return Store(Merchant(**merchant), self.sandbox.rules.layout)

    def _add(self, name: str, record: Record) -> None:
        """Add a record of the state, if all fit. One that is older than the one before would be
        inserted among all others.
        """
        self._records.append(record)
        if self.fitting.fits:
            table = self._store.tables[name]
            if table.order and record.key <= table.order[-1]:
                raise damaged(f"{name} {record.id} is older than the record before it")
            self._store.replace(name, None, table.parse(record))

    def _fold(self, body: Body) -> None:
        """Fold a step, if all records fit."""
        if self.fitting.fits:
            step = self.step(body)
            if self.fitting.fits:
                self.sandbox.fold(step)
                self.sandbox.log.append(step)
            return
        for part in body.get("parts", ()):
            for put in part.get("puts", ()):
                self._version(put)

    def _version(self, body: Body) -> Record:
        record = Record(
            body["id"],
            _key_in(body),
            body["version"],
            encoded(body["public"]),
            encoded(body["hidden"]),
        )
        table = body["table"]
        record = self.fitting.record(table, self._rewrite(self.sandbox, table, record))
        known: Record = self._shared.setdefault(record, record)  # restoring compares by identity
        return known

    def _event(self, body: Body, records: Sequence[Record]) -> Event:
        """An event. A part that is a number is that of one of the records."""
        resource = body["resource"]
        hidden = body["hidden"]
        given = body["extras"]
        extras = Extras(tuple(given["names"]), encoded(given["others"]))
        public = records[resource].public if isinstance(resource, int) else encoded(resource)
        rest = b""
        if isinstance(hidden, dict):
            rest = encoded(hidden)
        elif isinstance(hidden, int):
            rest = records[hidden].hidden
        if extras.names and not rest:
            raise damaged(f"event {body['id']} refers to a missing part")
        event = Event(**body | {"resource": public, "hidden": rest, "extras": extras})
        known = self._shared.setdefault(event.id, event)
        return known if known == event else event

    def _reply(self, body: Body) -> Saved:
        return Saved(
            key=_reply_key(body["key"]),
            fingerprint=bytes.fromhex(body["fingerprint"]),
            expires=body["expires"],
            status=body["status"],
            body=body["body"].encode(),
            headers=tuple(
                [
                    (name.encode("latin-1"), value.encode("latin-1"))
                    for name, value in body["headers"]
                ]
            ),
        )

    # -- steps

    def step(self, body: Body) -> Step:
        """Read the next step, with what it replaces in the state."""
        sandbox = self.sandbox
        restores = body.get("restores", False)
        self._check_next(body)
        parts = tuple([self._part(part, restores=restores) for part in body.get("parts", ())])
        changed = {part.merchant.id for part in parts}
        if len(changed) < len(parts) or not (restores or len(parts) == 1):
            raise _misplaced()
        versions = [] if restores else written(parts[0].changes)
        timers = [Timer(**timer) for timer in body.get("timers", ())]
        before = sandbox.standing
        numbers = [timer.seq for timer in timers]
        return Step(
            number=body["number"],
            at=body["at"],
            cause=Cause(**body["cause"]),
            before=before,
            after=_standing(body, max([before.timers, *numbers]), before.settings),
            parts=parts,
            event_ends=_ends(
                sandbox.events, body.get("events"), partial(self._event, records=versions)
            ),
            reply_ends=_ends(sandbox.replies, body.get("replies"), self._reply),
            timers_set=tuple(timers),
            timers_fired=tuple(
                filter(None, [sandbox.timers.live.get(number) for number in body.get("taken", ())])
            ),
            restores=restores,
        )

    def _check_next(self, body: Body) -> None:
        """Check that a step is the next one, and uses no ids again. Raises BadFile."""
        sandbox = self.sandbox
        number = body["number"]
        if number != sandbox.log.number + 1:
            raise damaged(f"step {number} after step {sandbox.log.number}")
        if any(map(lt, body["position"], sandbox.ids.position)):
            raise damaged(
                f"step {number} uses ids again: its position is lower than the one before"
            )

    def _part(self, body: Body, *, restores: bool) -> Part:
        """The changes of one merchant's records and usage, with what they replace.

        Only what restores a state closes a merchant, and never the sandbox's own.
        """
        stores = self.sandbox.stores
        merchant = body["merchant"]
        opens = isinstance(merchant, dict)
        closes = body.get("closes", False)
        store = self._new_store(merchant) if opens else stores[merchant]
        ident = store.merchant.id
        if opens and ident in stores:
            raise _misplaced()
        if closes and (opens or not restores or ident == self.sandbox.origin.home):
            raise _misplaced()
        changes = []
        for put in body.get("puts", ()):
            rows = store.tables[put["table"]].rows
            record = self._version(put)
            changes.append(Change(put["table"], rows.get(record.key), record))
        for drop in body.get("drops", ()):
            rows = store.tables[drop["table"]].rows
            changes.append(Change(drop["table"], rows[_key_in(drop)], None))
        used = []
        for key, after in body.get("used", {}).items():
            used.append(Used(key, after and _pair(after), store.usage.get(key)))
        return Part.of(store.merchant, changes, used, opens=opens, closes=closes)


def _standing(body: Body, timers: int, settings: SandboxSettings) -> Standing:
    """How a sandbox stands that has set so many timers, and has these settings unless told."""
    if "settings" in body:
        settings = SandboxSettings(**body["settings"])
    return Standing(
        ClockState(**body["clock"]), _pair(body["position"]), body["raised"], timers, settings
    )


def _misplaced() -> BadFile:
    return damaged("a step does not fit the merchants before it")


def _ends(items: Queue[Any], body: Body | None, read: Callable[[Any], Any]) -> Ends:
    """How the newest items of a list change: so many are gone, and others are there, which `read`
    makes of what the line has.
    """
    if body is None:
        return Ends()
    gone = [*islice(reversed(items), body["gone"])]
    return Ends(tuple(reversed(gone)), tuple(map(read, body["back"])))


def _key_in(body: Body) -> int:
    return place(int(body["created"]), body["id"])
