"""Reads the lines of a world back: a state, and steps, each with what it replaces in the state that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson

from ..engine.step import Cause, Drop, Part, Put, ReplyKey, Restored, Saved, Step, Used
from ..events.log import Event
from ..kernel.clock import ClockState
from ..kernel.ends import Ends
from ..kernel.record import NO_EXTRAS, Body, Extras, Record, exact
from ..kernel.timers import TimerData
from ..store.memory import Merchant, Usage
from .state import Owned, WorldState
from .writing import CREATED

Rewrite = Callable[[WorldState, str, Record], Record]
"""(state, table, record) -> the record as it is to be read: with other secrets, where a world changes hands."""


class Unreadable(ValueError):
    """Lines that are not those of a world; the message says what is wrong with them."""


class Reader:
    """Reads the lines of one world in their order: its state, then steps, each of which it is moved by.

    `steps` are the newest steps that were read, at most so many; `restorations` those that went back in time. `rewrite`
    is asked about every version of a record.
    """

    def __init__(self, rewrite: Rewrite | None = None, keep: int = 0) -> None:
        self._rewrite, self._keep = rewrite, keep
        self._owned: Owned | None = None
        self._state: WorldState | None = None
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
            shown = self._shown[resource] if isinstance(resource, int) else _json(resource)
            self.state.events.append(_event_of(body, shown, _json(body["hidden"])))
        elif kind == "timer":
            timer = _timer_of(body)
            self.state.timers[timer[1]] = timer
        elif kind == "reply":
            key, saved = _reply_of(body)
            self.state.replies[key] = saved
        elif kind == "merchant":
            usage = {key: (used[0], used[1]) for key, used in body.pop("usage").items()}
            unrecorded = {key: _use(used) for key, used in body.pop("unrecorded").items()}
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
        )

    def _version(self, body: Body) -> Record:
        ident = body["id"]
        record = Record(ident, _key(body), body["version"], _json(body["public"]), _json(body["hidden"]))
        return record if self._rewrite is None else self._rewrite(self.state, body["table"], record)

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
        drops = tuple(Drop(drop["table"], rows[drop["table"]][_key(drop)]) for drop in body.get("drops", ()))
        events = []
        for event in body.get("events", ()):
            resource, hidden = event["resource"], event["hidden"]
            shown = puts[resource][1].public if isinstance(resource, int) else _json(resource)
            events.append(_event_of(event, shown, puts[hidden][1].hidden if isinstance(hidden, int) else _json(hidden)))
        saved, forgotten = body.get("saved"), map(_key_of, body.get("forgotten_replies", ()))
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
            timers_set=tuple(_timer_of(timer) for timer in body.get("timers", ())),
            timers_before=state.timers_last,
            timers_taken=tuple(state.timers[number] for number in body.get("taken", ()) if number in state.timers),
            used=tuple(
                Used(key, _use(after), None if owned is None else owned.recorded(key))
                for key, after in body.get("used", {}).items()
            ),
            saved=None if saved is None else _reply_of(saved),
            forgotten_replies=tuple((key, state.replies[key]) for key in forgotten if key in state.replies),
            clock=ClockState(**body["clock"]),
            clock_before=state.clock,
            position=(body["position"][0], body["position"][1]),
            position_before=state.position,
            size=body["size"],
            restored=self._restored(body["restored"]) if "restored" in body else None,
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
            del owned.rows[drop["table"]][_key(drop)]
        for _ in range(body.get("forgotten_events", 0)):
            state.events.popleft()
        for event in body.get("events", ()):
            resource, hidden = event["resource"], event["hidden"]
            shown = records[resource].public if isinstance(resource, int) else _json(resource)
            kept = records[hidden].hidden if isinstance(hidden, int) else _json(hidden)
            state.events.append(_event_of(event, shown, kept))
            state.raised += 1
        for number in body.get("taken", ()):
            state.timers.pop(number, None)
        for timer in map(_timer_of, body.get("timers", ())):
            state.timers[timer[1]] = timer
            state.timers_last = max(state.timers_last, timer[1])
        for key, after in body.get("used", {}).items():
            owned.set_use(key, _use(after))
        for key in map(_key_of, body.get("forgotten_replies", ())):
            state.replies.pop(key, None)
        if "saved" in body:
            reply_key, saved = _reply_of(body["saved"])
            state.replies.pop(reply_key, None)
            state.replies[reply_key] = saved
        state.clock, state.step = ClockState(**body["clock"]), body["number"]
        state.position = (body["position"][0], body["position"][1])

    def _restored(self, body: Body) -> Restored:
        """What restoring an earlier state changes, with what it replaces."""
        state = self.state
        return Restored(
            tuple(self._part(part) for part in body["parts"]),
            tuple(state.owned),
            tuple(body["merchants"]),
            _ends(state.events, body["events_gone"], [list(map(_whole_event, end)) for end in body["events_back"]]),
            state.raised,
            body["events_raised"],
            _ends(state.replies.items(), body["replies_gone"], [list(map(_reply_of, e)) for e in body["replies_back"]]),
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
            tuple(Drop(drop["table"], rows[drop["table"]][_key(drop)]) for drop in body["drops"]),
            tuple(Used(key, _use(after), owned.recorded(key)) for key, after in body["used"].items()),
        )


def _ends(items: Iterable[Any], gone: list[int], back: list[list[Any]]) -> Ends:
    """How the ends of a list change: so many items go at each, and others come."""
    every = list(items)
    oldest, newest = gone
    if oldest + newest > len(every):
        raise Unreadable("more goes than there is")
    return Ends(tuple(every[:oldest]), tuple(back[0]), tuple(every[len(every) - newest :]), tuple(back[1]))


def _key(body: Body) -> int:
    """A record's place."""
    return int(body["created"]) << CREATED | int(body["id"].replace("-", ""), 16)


def _use(told: Any) -> Usage | None:
    return None if told is None else (told[0], told[1])


def _whole_event(body: Body) -> Event:
    return _event_of(body, _json(body["resource"]), _json(body["hidden"]))


def _json(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    return b"" if value is None else exact(orjson.dumps(value))


def _event_of(body: Body, resource: bytes, hidden: bytes) -> Event:
    names, others = tuple(body["names"]), tuple((name, value) for name, value in body["others"])
    if names and not hidden:
        raise Unreadable(f"event {body['id']} names members of nothing")
    return Event(
        body["id"],
        body["type"],
        body["at"],
        body["merchant"],
        body["key"],
        body["subject"],
        body["project"],
        resource,
        hidden,
        Extras(names, others) if names or others else NO_EXTRAS,
    )


def _timer_of(body: Body) -> TimerData:
    return body["due"], body["number"], body["job"], body["merchant"], body["subject"]


def _key_of(names: list[str]) -> ReplyKey:
    merchant_id, method, path, key = names
    return merchant_id, method, path, key


def _reply_of(body: Body) -> tuple[ReplyKey, Saved]:
    headers = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in body["headers"])
    saved = Saved(bytes.fromhex(body["fingerprint"]), body["expires"], body["status"], body["body"].encode(), headers)
    return _key_of(body["key"]), saved
