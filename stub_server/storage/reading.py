"""Reads the lines of a sandbox: its state, and the steps that changed it.

A step names what it replaced by id alone, so lines are read in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from operator import itemgetter, lt
from typing import Any

from ..core.clock import ClockState
from ..core.ids import Position
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
Empty = Callable[[str, str, int], Sandbox]
"""(name, scenario, seed) as lines say them -> a sandbox without records, which may have
another name.
"""

_reply_key: Callable[[list[str]], ReplyKey] = itemgetter(*range(4))
_pair: Callable[[list[Any]], tuple[Any, Any]] = itemgetter(0, 1)  # a usage or a position


class Reader:
    """Reads the lines of one sandbox in their order: its state, then steps, each of which changes
    the state.
    """

    def __init__(
        self,
        empty: Empty,
        rewrite: Rewrite,
        fitting: Fitting | None = None,
        shared: Body | None = None,
    ) -> None:
        """Every version of a record passes through `rewrite`, then `fitting`.

        Readers of several states of one sandbox have one `shared`, so that these share equal
        versions and events.
        """
        self._empty, self._rewrite, self.fitting = empty, rewrite, fitting
        self._shared: dict[Any, Any] = {} if shared is None else shared
        self._sandbox: Sandbox | None = None
        # the records of the state that no store has yet, by table: of each merchant, and of the
        # one whose line was read last
        self._rows: dict[str, dict[str, dict[int, Record]]] = {}
        self._last: dict[str, dict[int, Record]]
        # their public parts in their order
        self._shown: list[bytes] = []

    @classmethod
    def of(cls, sandbox: Sandbox, rewrite: Rewrite, fitting: Fitting) -> Reader:
        """One that has read a sandbox."""
        reader = cls(lambda name, scenario, seed: sandbox, rewrite, fitting)
        reader._sandbox = sandbox
        return reader

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox that is read. Raises BadFile where there is none."""
        if self._sandbox is None:
            raise damaged("there is no sandbox in it")
        return self._sandbox

    def end(self) -> Sandbox:
        """The sandbox with all that was read.

        Raises KeyError, TypeError or ValueError for records that lack what an index reads.
        """
        for ident, rows in self._rows.items():
            self.sandbox.stores[ident].rebuild(rows)
        self._rows.clear()
        return self.sandbox

    def read(self, kind: str, body: Any) -> None:
        """Read a line. Raises BadFile."""
        try:
            self._read(kind, body)
            if len(self.sandbox.stores) > MOST_MERCHANTS:  # 200 bytes of one take 40 KB
                raise damaged(f"more than {MOST_MERCHANTS} merchants")
        except BadFile:
            raise
        except MISFITS as error:
            unfit = self._unfit()
            if unfit:  # that is why
                raise BadFile("unfit", *unfit) from None
            raise damaged(
                f"a line {kind[:40]!r} that cannot be read ({type(error).__name__}: {error})"
            ) from None

    def _unfit(self) -> Sequence[str]:
        """What of the records that were read does not fit."""
        return () if self.fitting is None else self.fitting.unfit()

    def _fold(self, body: Body) -> None:
        """Fold a step, while all records fit: what a table does with others may take more time than
        their length allows. Then the records of further steps are only checked.
        """
        if self._unfit():
            for part in body.get("parts", ()):
                for put in part.get("puts", ()):
                    self._version(put)
            return
        step = self.step(body)
        if not self._unfit():
            self.sandbox.fold(step)
            self.sandbox.log.append(step)

    def _read(self, kind: str, body: Any) -> None:
        if kind == "record":
            self._add(body["table"], self._version(body))
        elif kind == "step":
            self._fold(body)
        elif kind == "event":
            self.sandbox.events.exchange(Ends(after=(self._event(body, self._shown),)))
        elif kind == "timer":
            self.sandbox.timers.put(Timer(**body))
        elif kind == "reply":
            self.sandbox.replies.exchange(Ends(after=(self._reply(body),)))
        elif kind == "merchant":
            usage = {key: _pair(used) for key, used in body.pop("usage").items()}
            store = Store(Merchant(**body), self.sandbox.rules.layout)
            self.sandbox.stores[store.merchant.id], store.usage = store, usage
            self._last = self._rows[store.merchant.id] = {}
        elif kind == "sandbox":
            self._begin(body)
        else:
            raise damaged(f"a line of an unknown kind, {kind[:40]!r}")

    def _begin(self, body: Body) -> None:
        if self._sandbox is not None:
            raise damaged("two sandboxes where one was expected")
        sandbox = self._empty(body["name"], body["scenario"], body["seed"])
        sandbox.log.number = body["step"]
        sandbox.clock.set(ClockState(**body["clock"]))
        sandbox.ids.position = _pair(body["position"])
        sandbox.ids.event_salt = int(body["event_salt"], 16)
        sandbox.events.raised = body["events_raised"]
        sandbox.timers.last = body["timers_set"]
        sandbox.settings = SandboxSettings(**body["settings"])
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

    def _add(self, table: str, record: Record) -> None:
        self._last.setdefault(table, {})[record.key] = record
        self._shown.append(record.public)

    def _version(self, body: Body) -> Record:
        public, hidden = encoded(body["public"]), encoded(body["hidden"])
        record = Record(body["id"], _key_in(body), body["version"], public, hidden)
        table = body["table"]
        record = self._rewrite(self.sandbox, table, record)
        if self.fitting is not None:
            record = self.fitting.record(table, record)
        known: Record = self._shared.setdefault(record, record)  # restoring compares by identity
        return known

    def _event(self, body: Body, shown: Sequence[bytes] = (), kept: Sequence[bytes] = ()) -> Event:
        """An event. A part that is a number is one of those given."""
        resource, hidden, given = body["resource"], body["hidden"], body["extras"]
        extras = Extras(tuple(given["names"]), encoded(given["others"]))
        public = shown[resource] if isinstance(resource, int) else encoded(resource)
        rest = b""
        if isinstance(hidden, dict):
            rest = encoded(hidden)
        elif isinstance(hidden, int):
            rest = kept[hidden]
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

    def step(self, body: Body) -> Step:
        """Read the next step, with what it replaces in the state."""
        sandbox, restores = self.end(), body.get("restores", False)
        self._check_next(body["number"], _pair(body["position"]))
        parts = tuple(map(self._part, body.get("parts", ())))
        self._check_merchants(body["number"], parts, restores=restores)
        versions = [] if restores else written(parts[0].changes)
        public = [record.public for record in versions]
        hidden = [record.hidden for record in versions]
        read_event = partial(self._event, shown=public, kept=hidden)
        timers, live = [Timer(**timer) for timer in body.get("timers", ())], sandbox.timers.live
        return Step(
            number=body["number"],
            at=body["at"],
            cause=Cause(**body["cause"]),
            before=sandbox.standing,
            after=self._standing(body, timers),
            parts=parts,
            event_ends=_ends(sandbox.events, body.get("events"), read_event),
            reply_ends=_ends(sandbox.replies, body.get("replies"), self._reply),
            timers_set=tuple(timers),
            timers_fired=tuple(
                [live[number] for number in body.get("taken", ()) if number in live]
            ),
            restores=restores,
        )

    def _standing(self, body: Body, timers: Iterable[Timer]) -> Standing:
        """How the sandbox stands after a step that sets these timers."""
        before = self.sandbox.standing
        settings = before.settings
        if "settings" in body:
            settings = SandboxSettings(**body["settings"])
        last = max([before.timers, *[timer.seq for timer in timers]])
        clock, position = ClockState(**body["clock"]), _pair(body["position"])
        return Standing(clock, position, body["raised"], last, settings)

    def _check_next(self, number: int, position: Position) -> None:
        """Check that a step is the next one, and uses no ids again. Raises BadFile."""
        sandbox = self.sandbox
        if number != sandbox.log.number + 1:
            raise damaged(f"step {number} after step {sandbox.log.number}")
        if any(map(lt, position, sandbox.ids.position)):
            raise damaged(
                f"step {number} uses ids again: its position is lower than the one before"
            )

    def _check_merchants(self, number: int, parts: Sequence[Part], *, restores: bool) -> None:
        """Check that a step can be undone: it changes each merchant once, adds none who is there,
        and leaves the sandbox its own.

        Raises BadFile.
        """
        there, changed = {*self.sandbox.stores}, {part.merchant.id for part in parts}
        opened = {part.merchant.id for part in parts if part.opens}
        closed = {part.merchant.id for part in parts if part.closes}
        left = (there | opened) - closed
        is_right = len(changed) == len(parts) and not (there | closed) & opened
        if not restores:
            is_right = is_right and len(parts) == 1 and not closed
        if not is_right or self.sandbox.origin.home not in left:
            raise damaged(f"step {number} does not fit the merchants before it")

    def _part(self, body: Body) -> Part:
        """The changes of one merchant's records and usage, with what they replace."""
        merchant = body["merchant"]
        opens = isinstance(merchant, dict)
        if opens:
            store = Store(Merchant(**merchant), self.sandbox.rules.layout)
        else:
            store = self.sandbox.stores[merchant]
        changes = []
        for put in body.get("puts", ()):
            name, record = put["table"], self._version(put)
            changes.append(Change(name, store.tables[name].rows.get(record.key), record))
        for drop in body.get("drops", ()):
            name = drop["table"]
            changes.append(Change(name, store.tables[name].rows[_key_in(drop)], None))
        used = []
        for key, after in body.get("used", {}).items():
            used.append(Used(key, after and _pair(after), store.usage.get(key)))
        closes = body.get("closes", False)
        return Part.of(store.merchant, changes, used, opens=opens, closes=closes)


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
