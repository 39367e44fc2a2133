"""Reads the lines of a sandbox back: a state, and steps, each with what it replaces in the state that it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.step import Cause, Drop, Part, Put, ReplyKey, Restored, SandboxSettings, Saved, Step, Used
from ..events.log import Event
from ..kernel.clock import ClockState
from ..kernel.record import Body, Record
from ..store.memory import Merchant
from ..store.table import parted
from .fitting import Fitting
from .lots import events_in, records_in
from .parts import Unreadable, ends, event_of, key_in, part_of, reply_key, reply_of, timer_of, use_of
from .state import Owned, WorldState

Rewrite = Callable[[WorldState, str, Record], Record]
"""(state, table, record) -> the record as it is to be read: with other secrets, where a sandbox changes hands."""


class Reader:
    """Reads the lines of one sandbox in their order: its state, then steps, each of which it is moved by."""

    def __init__(self, rewrite: Rewrite | None = None, keep: int = 0, fitting: Fitting | None = None) -> None:
        """`keep` at most so many steps. `rewrite`, then `fitting`, are asked about every version of a record."""
        self._rewrite, self._keep, self.fitting = rewrite, keep, fitting
        self._owned: Owned | None = None
        self._state: WorldState | None = None
        self._shared: dict[bytes, bytes] = {}  # what records share of their hidden parts
        self._shown: list[bytes] = []  # what the records of the state show, in their order
        self._steps: list[Step] = []

    @property
    def state(self) -> WorldState:
        """The state as it is after what was read."""
        if self._state is None:
            raise Unreadable("there is no sandbox in it")
        return self._state

    @property
    def steps(self) -> list[Step]:
        """The newest steps that were read."""
        return self._steps[-self._keep :] if self._keep else []

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
            self.state.events.append(self._event(event_of(body, shown, part_of(body["hidden"]))))
        elif kind == "timer":
            timer = timer_of(body)
            self.state.timers[timer[1]] = timer
        elif kind == "reply":
            key, saved = self._reply(body)
            self.state.replies[key] = saved
        elif kind == "records":
            self._take_records(body)
        elif kind == "events":
            self.state.events.extend(map(self._event, events_in(body, self._shown)))
        elif kind == "timers":
            self.state.timers.update({timer[1]: tuple(timer) for timer in body})
        elif kind == "merchant":
            usage = {key: (used[0], used[1]) for key, used in body.pop("usage").items()}
            unrecorded = {key: use_of(used) for key, used in body.pop("unrecorded").items()}
            self._owned = self.state.owned[body["id"]] = Owned(Merchant(**body), {}, usage, unrecorded)
        elif kind == "use":
            count, last = body["usage"]
            self.state.use(body["merchant"], body["key"], (count, last))
        elif kind in ("sandbox", "world"):  # the latter in directories of earlier formats
            self._begin(body)
        else:
            raise Unreadable(f"a line of an unknown kind, {kind[:40]!r}")

    def _begin(self, body: Body) -> None:
        if self._state is not None:
            raise Unreadable("two sandboxes where one was expected")
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
        parts = parted(body["table"], part_of(body["hidden"]), self._shared)
        record = Record(ident, key_in(body), body["version"], part_of(body["public"]), *parts)
        return self._fitted(body["table"], record)

    def _fitted(self, table: str, record: Record) -> Record:
        if self._rewrite is not None:
            record = self._rewrite(self.state, table, record)
        return record if self.fitting is None else self.fitting.record(table, record)

    def _event(self, event: Event) -> Event:
        return event if self.fitting is None else self.fitting.event(event)

    def _reply(self, body: Body) -> tuple[ReplyKey, Saved]:
        key, saved = reply_of(body)
        return key, saved if self.fitting is None else self.fitting.reply(key, saved)

    def _take_records(self, lot: Body) -> None:
        if self._owned is None:
            raise Unreadable("records that belong to nobody")
        table, records = lot["table"], records_in(lot, self._shared)
        if self._rewrite is not None or self.fitting is not None:
            records = [self._fitted(table, record) for record in records]
        self._owned.rows.setdefault(table, {}).update({record.key: record for record in records})
        self._shown.extend([record.public for record in records])

    def _take(self, body: Body) -> None:
        """A step, with what it replaces in the state that it finds."""
        state = self.state
        if body["number"] != state.step + 1:
            raise Unreadable(f"step {body['number']} after step {state.step}")
        if any(now < before for now, before in zip(body["position"], state.position, strict=True)):
            raise Unreadable(f"step {body['number']} gives ids again: its position is before that of the step before")
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
            kept = puts[hidden][1].hidden if isinstance(hidden, int) else part_of(hidden)
            events.append(self._event(event_of(event, shown, kept)))
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
            timers_fired=tuple(state.timers[number] for number in body.get("taken", ()) if number in state.timers),
            used=tuple(
                Used(key, use_of(after), None if owned is None else owned.recorded(key))
                for key, after in body.get("used", {}).items()
            ),
            saved=None if saved is None else self._reply(saved),
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
        if self._keep:
            self._steps.append(step)
            if len(self._steps) > 2 * self._keep:
                del self._steps[: -self._keep]

    def _restored(self, body: Body) -> Restored:
        """What restoring an earlier state changes, with what it replaces."""
        state = self.state
        return Restored(
            tuple(self._part(part) for part in body["parts"]),
            tuple(state.owned),
            tuple(body["merchants"]),
            ends(state.events, body["events_gone"], [[*map(self._whole, end)] for end in body["events_back"]]),
            state.raised,
            body["events_raised"],
            ends(state.replies.items(), body["replies_gone"], [[*map(self._reply, e)] for e in body["replies_back"]]),
        )

    def _whole(self, body: Body) -> Event:
        """An event that names nothing of what stands beside it."""
        return self._event(event_of(body, part_of(body["resource"]), part_of(body["hidden"])))

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
