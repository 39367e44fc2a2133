"""Reads the lines of a world back: a state, and steps, each with what it replaces in the state that it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.rules import SandboxSettings
from ..engine.step import Cause, Drop, Part, Put, Restored, Step, Used
from ..kernel.clock import ClockState
from ..kernel.record import Body, Record
from ..store.memory import Merchant
from ..store.table import parted
from .lots import events_in, records_in
from .parts import Unreadable, ends, event_of, key_in, part_of, reply_key, reply_of, timer_of, use_of, whole_event
from .state import Owned, WorldState

Rewrite = Callable[[WorldState, str, Record], Record]
"""(state, table, record) -> the record as it is to be read: with other secrets, where a world changes hands."""


class Reader:
    """Reads the lines of one world in their order: its state, then steps, each of which it is moved by.

    `steps` are the newest steps that were read, at most so many; `restorations` those that went back in time. `rewrite`
    is asked about every version of a record.
    """

    def __init__(self, rewrite: Rewrite | None = None, keep: int = 0) -> None:
        self._rewrite, self._keep = rewrite, keep
        self._owned: Owned | None = None
        self._state: WorldState | None = None
        self._apart: dict[bytes, bytes] = {}  # what records share of their hidden parts
        self._shown: list[bytes] = []  # what the records of the state show, in their order
        self.skip = 0  # so many of the next steps are not kept: what they replace is not looked up
        self.steps: list[Step] = []
        self.restorations: list[Step] = []

    @property
    def state(self) -> WorldState:
        """The state as it is after what was read."""
        if self._state is None:
            raise Unreadable("there is no world in it")
        return self._state

    def read(self, kind: str, body: Any) -> None:
        """Take a line. Raises Unreadable."""
        try:
            self._read(kind, body)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            raise Unreadable(f"a line {kind[:40]!r} that cannot be read ({type(error).__name__}: {error})") from None

    def _read(self, kind: str, body: Any) -> None:
        if kind == "record":
            if self._owned is None:
                raise Unreadable("a record that belongs to nobody")
            record = self._version(body)
            self._owned.rows.setdefault(body["table"], {})[record.key] = record
            self._shown.append(record.public)
        elif kind == "step":
            self._take(body)
        elif kind == "event":
            resource = body["resource"]
            shown = self._shown[resource] if isinstance(resource, int) else part_of(resource)
            self.state.events.append(event_of(body, shown, part_of(body["hidden"])))
        elif kind == "timer":
            timer = timer_of(body)
            self.state.timers[timer[1]] = timer
        elif kind == "reply":
            key, saved = reply_of(body)
            self.state.replies[key] = saved
        elif kind == "records":
            self._take_records(body)
        elif kind == "events":
            self.state.events.extend(events_in(body, self._shown))
        elif kind == "timers":
            self.state.timers.update({timer[1]: tuple(timer) for timer in body})
        elif kind == "merchant":
            usage = {key: (used[0], used[1]) for key, used in body.pop("usage").items()}
            unrecorded = {key: use_of(used) for key, used in body.pop("unrecorded").items()}
            self._owned = self.state.owned[body["id"]] = Owned(Merchant(**body), {}, usage, unrecorded)
        elif kind == "use":
            count, last = body["usage"]
            self.state.use(body["merchant"], body["key"], (count, last))
        elif kind == "world":
            self._begin(body)
        else:
            raise Unreadable(f"a line of an unknown kind, {kind[:40]!r}")

    def _begin(self, body: Body) -> None:
        if self._state is not None:
            raise Unreadable("two worlds where one was expected")
        self._state = WorldState(
            name=body["name"],
            scenario=body["scenario"],
            seed=body["seed"],
            home=body["home"],
            step=body["step"],
            clock=ClockState(**body["clock"]),
            position=(body["position"][0], body["position"][1]),
            event_salt=int(body["event_salt"], 16),
            raised=body["events_raised"],
            timers_last=body["timers_set"],
            sample=body["sample"],
            personas=body["personas"],
            seeded_keys=frozenset(body["seeded_keys"]),
            settings=_settings(body, "settings"),
            first_settings=_settings(body, "first_settings"),
        )

    def _version(self, body: Body) -> Record:
        ident = body["id"]
        parts = parted(body["table"], part_of(body["hidden"]), self._apart)
        record = Record(ident, key_in(body), body["version"], part_of(body["public"]), *parts)
        return record if self._rewrite is None else self._rewrite(self.state, body["table"], record)

    def _take_records(self, lot: Body) -> None:
        if self._owned is None:
            raise Unreadable("records that belong to nobody")
        table, records = lot["table"], records_in(lot, self._apart)
        if self._rewrite is not None:
            records = [self._rewrite(self.state, table, record) for record in records]
        self._owned.rows.setdefault(table, {}).update({record.key: record for record in records})
        self._shown.extend([record.public for record in records])

    def _take(self, body: Body) -> None:
        """A step, with what it replaces in the state that it finds."""
        state = self.state
        if body["number"] != state.step + 1:
            raise Unreadable(f"step {body['number']} after step {state.step}")
        if any(now < before for now, before in zip(body["position"], state.position, strict=True)):
            raise Unreadable(f"step {body['number']} gives ids again: its position is before that of the step before")
        if self.skip:
            self.skip -= 1
            if "restored" not in body:
                self._pass(body)
                return
        told, opens_store = body["merchant"], isinstance(body["merchant"], dict)
        merchant = Merchant(**told) if opens_store else state.owned[told].merchant
        owned = None if opens_store else state.owned[told]
        rows = {} if owned is None else owned.rows
        puts: list[Put] = []
        for put in body.get("puts", ()):
            record = self._version(put)
            puts.append((put["table"], record, rows.get(put["table"], {}).get(record.key)))
        drops = tuple(Drop(drop["table"], rows[drop["table"]][key_in(drop)]) for drop in body.get("drops", ()))
        events = []
        for event in body.get("events", ()):
            resource, hidden = event["resource"], event["hidden"]
            shown = puts[resource][1].public if isinstance(resource, int) else part_of(resource)
            events.append(
                event_of(event, shown, puts[hidden][1].hidden if isinstance(hidden, int) else part_of(hidden))
            )
        saved, forgotten = body.get("saved"), map(reply_key, body.get("forgotten_replies", ()))
        step = Step(
            number=body["number"],
            at=body["at"],
            cause=Cause(**body["cause"]),
            merchant=merchant,
            opens_store=opens_store,
            puts=tuple(puts),
            drops=drops,
            events=tuple(events),
            events_before=state.raised,
            forgotten_events=tuple(state.events[place] for place in range(body.get("forgotten_events", 0))),
            timers_set=tuple(timer_of(timer) for timer in body.get("timers", ())),
            timers_before=state.timers_last,
            timers_taken=tuple(state.timers[number] for number in body.get("taken", ()) if number in state.timers),
            used=tuple(
                Used(key, use_of(after), None if owned is None else owned.recorded(key))
                for key, after in body.get("used", {}).items()
            ),
            saved=None if saved is None else reply_of(saved),
            forgotten_replies=tuple((key, state.replies[key]) for key in forgotten if key in state.replies),
            clock=ClockState(**body["clock"]),
            clock_before=state.clock,
            position=(body["position"][0], body["position"][1]),
            position_before=state.position,
            size=body["size"],
            restored=self._restored(body["restored"]) if "restored" in body else None,
            settings=_settings(body, "settings"),
            settings_before=state.settings if "settings" in body else None,
        )
        state.fold(step)
        if step.restored is not None:
            self.restorations.append(step)
        if self._keep:
            self.steps.append(step)
            if len(self.steps) > 2 * self._keep:
                del self.steps[: -self._keep]

    def _pass(self, body: Body) -> None:
        """Have what a step changed that nobody will undo."""
        state, told = self.state, body["merchant"]
        if isinstance(told, dict):
            state.owned[told["id"]] = Owned(Merchant(**told), {})
            told = told["id"]
        owned, records = state.owned[told], []
        for put in body.get("puts", ()):
            record = self._version(put)
            records.append(record)
            owned.rows.setdefault(put["table"], {})[record.key] = record
        for drop in body.get("drops", ()):
            del owned.rows[drop["table"]][key_in(drop)]
        for _ in range(body.get("forgotten_events", 0)):
            state.events.popleft()
        for event in body.get("events", ()):
            resource, hidden = event["resource"], event["hidden"]
            shown = records[resource].public if isinstance(resource, int) else part_of(resource)
            kept = records[hidden].hidden if isinstance(hidden, int) else part_of(hidden)
            state.events.append(event_of(event, shown, kept))
            state.raised += 1
        for number in body.get("taken", ()):
            state.timers.pop(number, None)
        for timer in map(timer_of, body.get("timers", ())):
            state.timers[timer[1]] = timer
            state.timers_last = max(state.timers_last, timer[1])
        for key, after in body.get("used", {}).items():
            owned.set_use(key, use_of(after))
        for gone in map(reply_key, body.get("forgotten_replies", ())):
            state.replies.pop(gone, None)
        if "saved" in body:
            key, saved = reply_of(body["saved"])
            state.replies.pop(key, None)
            state.replies[key] = saved
        state.settings = _settings(body, "settings") or state.settings
        state.clock, state.step = ClockState(**body["clock"]), body["number"]
        state.position = (body["position"][0], body["position"][1])

    def _restored(self, body: Body) -> Restored:
        """What restoring an earlier state changes, with what it replaces."""
        state = self.state
        return Restored(
            tuple(self._part(part) for part in body["parts"]),
            tuple(state.owned),
            tuple(body["merchants"]),
            ends(state.events, body["events_gone"], [list(map(whole_event, end)) for end in body["events_back"]]),
            state.raised,
            body["events_raised"],
            ends(state.replies.items(), body["replies_gone"], [list(map(reply_of, e)) for e in body["replies_back"]]),
        )

    def _part(self, body: Body) -> Part:
        merchant = Merchant(**body["merchant"])
        owned = self.state.owned.get(merchant.id) or Owned(merchant, {})
        rows = owned.rows
        puts = [(put["table"], self._version(put)) for put in body["puts"]]
        return Part(
            merchant,
            body["opens"],
            body["closes"],
            tuple([(name, record, rows.get(name, {}).get(record.key)) for name, record in puts]),
            tuple(Drop(drop["table"], rows[drop["table"]][key_in(drop)]) for drop in body["drops"]),
            tuple(Used(key, use_of(after), owned.recorded(key)) for key, after in body["used"].items()),
        )


def _settings(body: Body, name: str) -> SandboxSettings | None:
    return SandboxSettings(**body[name]) if name in body else None
