"""Reads the lines of a sandbox back: a state, and steps, each with what it replaces in the state that it finds.

`writing.py` writes the lines.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..engine.step import Cause, Drop, Part, ReplyKey, Restored, SandboxSettings, Saved, Step, Used
from ..events.log import Event
from ..kernel.clock import ClockState
from ..kernel.ends import Ends
from ..kernel.record import NO_EXTRAS, Body, Extras, Record
from ..kernel.timers import TimerData
from ..store.memory import Merchant, Usage
from ..store.table import encoded, parted, place
from .fitting import Fitting
from .state import HEAD, Owned, SandboxState
from .writing import EVENT

Rewrite = Callable[[SandboxState, str, Record], Record]
"""(state, table, record) -> the record as it is to be read: with other secrets, where a sandbox changes hands."""


class Unreadable(ValueError):
    """Lines that are not those of a sandbox; the message says what is wrong with them."""


class Reader:
    """Reads the lines of one sandbox in their order: its state, then steps, each of which changes the state."""

    def __init__(self, rewrite: Rewrite | None = None, keep: int = 0, fitting: Fitting | None = None) -> None:
        """`keep` at most so many steps. Every version of a record passes through `rewrite`, then `fitting`."""
        self._rewrite, self.fitting = rewrite, fitting
        self._owned: Owned | None = None
        self._state: SandboxState | None = None
        self._parts: dict[bytes, bytes] = {}  # that records share of their hidden parts
        self._shown: list[bytes] = []  # the public parts of the records of the state, in their order
        self.steps: deque[Step] = deque(maxlen=keep)  # the newest that were read

    @property
    def state(self) -> SandboxState:
        """The state after what was read."""
        if self._state is None:
            raise Unreadable("there is no sandbox in it")
        return self._state

    def read(self, kind: str, body: Any) -> None:
        """Read a line. Raises Unreadable."""
        try:
            self._read(kind, body)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            raise Unreadable(f"a line {kind[:40]!r} that cannot be read ({type(error).__name__}: {error})") from None

    def _read(self, kind: str, body: Any) -> None:
        if kind == "record":
            self._add(body["table"], [self._version(body)])
        elif kind == "records":
            self._add(body["table"], [self._fitted(body["table"], each) for each in _records_in(body, self._parts)])
        elif kind == "step":
            self._apply(body)
        elif kind in ("event", "events"):
            events, raised = self.state.events, self.state.events_raised
            for row in [[body[name] for name in EVENT]] if kind == "event" else body:
                events.append(self._event(row, self._shown))
            events.raised = raised
        elif kind in ("timer", "timers"):
            timers = [timer_of(body)] if kind == "timer" else map(tuple, body)
            self.state.timers.update({timer[1]: timer for timer in timers})
        elif kind == "reply":
            key, saved = self._reply(body)
            self.state.replies.put(key, saved)
        elif kind == "merchant":
            usage = {key: (used[0], used[1]) for key, used in body.pop("usage").items()}
            unrecorded = {key: _usage_of(used) for key, used in body.pop("unrecorded").items()}
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
        head = {name: body[name] for name in HEAD if name != "events_raised"}
        head |= {"clock": ClockState(**body["clock"]), "event_salt": int(body["event_salt"], 16)}
        head |= {"position": tuple(body["position"]), "seeded_keys": frozenset(body["seeded_keys"])}
        head |= {name: _settings(body, name) for name in ("settings", "first_settings")}
        self._state = SandboxState(**head)
        self._state.events.raised = body["events_raised"]

    def _add(self, table: str, records: list[Record]) -> None:
        if self._owned is None:
            raise Unreadable("a record without a merchant")
        self._owned.rows.setdefault(table, {}).update({record.key: record for record in records})
        self._shown.extend([record.public for record in records])

    def _version(self, body: Body) -> Record:
        parts = parted(body["table"], _part_of(body["hidden"]), self._parts)
        record = Record(body["id"], _key_in(body), body["version"], _part_of(body["public"]), *parts)
        return self._fitted(body["table"], record)

    def _fitted(self, table: str, record: Record) -> Record:
        if self._rewrite is not None:
            record = self._rewrite(self.state, table, record)
        return record if self.fitting is None else self.fitting.record(table, record)

    def _event(self, row: list[Any], shown: list[bytes], kept: list[bytes] | None = None) -> Event:
        """An event of its members in order. A part that is a number is one of those given."""
        *members, resource, hidden, names, others = row
        extras = Extras(tuple(names), tuple((name, value) for name, value in others)) if names or others else NO_EXTRAS
        public = shown[resource] if isinstance(resource, int) else _part_of(resource)
        rest = kept[hidden] if isinstance(hidden, int) and kept is not None else _part_of(hidden)
        if names and not rest:
            raise Unreadable(f"event {members[0]} names members of nothing")
        event = Event._make((*members, public, rest, extras))
        return event if self.fitting is None else self.fitting.event(event)

    def _reply(self, body: Body) -> tuple[ReplyKey, Saved]:
        headers = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in body["headers"])
        fingerprint = bytes.fromhex(body["fingerprint"])
        saved = Saved(fingerprint, body["expires"], body["status"], body["body"].encode(), headers)
        key = _reply_key(body["key"])
        return key, saved if self.fitting is None else self.fitting.reply(key, saved)

    def _apply(self, body: Body) -> None:
        """Read a step, with what it replaces in the state that it finds, and apply it."""
        state = self.state
        if body["number"] != state.step + 1:
            raise Unreadable(f"step {body['number']} after step {state.step}")
        if any(now < before for now, before in zip(body["position"], state.position, strict=True)):
            raise Unreadable(f"step {body['number']} uses ids again: its position is lower than the one before")
        opens_store = isinstance(body["merchant"], dict)
        merchant = Merchant(**body["merchant"]) if opens_store else state.owned[body["merchant"]].merchant
        part = self._part(merchant, body, opens=opens_store, closes=False)
        public, hidden = [put[1].public for put in part.puts], [put[1].hidden for put in part.puts]
        events = [self._event([event[name] for name in EVENT], public, hidden) for event in body.get("events", ())]
        forgotten = map(_reply_key, body.get("forgotten_replies", ()))
        step = Step(
            number=body["number"],
            at=body["at"],
            cause=Cause(**body["cause"]),
            merchant=merchant,
            opens_store=opens_store,
            puts=part.puts,
            drops=part.drops,
            events=tuple(events),
            events_before=state.events_raised,
            forgotten_events=state.events.outgoing(events),
            timers_set=tuple(timer_of(timer) for timer in body.get("timers", ())),
            timers_before=state.timers_set,
            timers_fired=tuple(state.timers[number] for number in body.get("taken", ()) if number in state.timers),
            used=part.used,
            saved=self._reply(body["saved"]) if "saved" in body else None,
            forgotten_replies=tuple((key, saved) for key in forgotten if (saved := state.replies.get(key))),
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
        self.steps.append(step)

    def _restored(self, body: Body) -> Restored:
        state = self.state
        events = [[self._event([event[name] for name in EVENT], []) for event in end] for end in body["events_back"]]
        replies = [[*map(self._reply, end)] for end in body["replies_back"]]
        parts = [
            self._part(Merchant(**part["merchant"]), part, opens=part["opens"], closes=part["closes"])
            for part in body["parts"]
        ]
        return Restored(
            tuple(parts),
            tuple(state.owned),
            tuple(body["merchants"]),
            _ends(state.events, body["events_gone"], events),
            state.events_raised,
            body["events_raised"],
            _ends(state.replies.items(), body["replies_gone"], replies),
        )

    def _part(self, merchant: Merchant, body: Body, *, opens: bool, closes: bool) -> Part:
        """The changes of one merchant's records and usage, with what they replace."""
        owned = self.state.owned.get(merchant.id) or Owned(merchant, {})
        rows = owned.rows
        puts = [(put["table"], self._version(put)) for put in body.get("puts", ())]
        drops = [Drop(drop["table"], rows[drop["table"]][_key_in(drop)]) for drop in body.get("drops", ())]
        used = [Used(key, _usage_of(after), owned.recorded(key)) for key, after in body.get("used", {}).items()]
        replaced = [(name, record, rows.get(name, {}).get(record.key)) for name, record in puts]
        return Part(merchant, opens, closes, tuple(replaced), tuple(drops), tuple(used))


def _records_in(body: Body, known: dict[bytes, bytes]) -> Iterator[Record]:
    """The records of a line `records`; `known` is as for `parted`."""
    keys = map(place, body["created"], body["ids"])
    rows = zip(body["ids"], keys, body["versions"], body["public"], body["hidden"], strict=True)
    for ident, key, version, public, hidden in rows:
        yield Record(ident, key, version, public.encode(), *parted(body["table"], hidden.encode(), known))


def _ends(items: Iterable[Any], gone: list[int], back: list[list[Any]]) -> Ends:
    """How the ends of a list change: so many items are removed at each, and others are added."""
    every = list(items)
    oldest, newest = gone
    if oldest + newest > len(every):
        raise Unreadable("more is removed than there is")
    return Ends(tuple(every[:oldest]), tuple(back[0]), tuple(every[len(every) - newest :]), tuple(back[1]))


def _key_in(body: Body) -> int:
    return place(int(body["created"]), body["id"])


def _usage_of(used: Any) -> Usage | None:
    return None if used is None else (used[0], used[1])


def _part_of(value: Any) -> bytes:
    """JSON that is in a line as itself, or as text."""
    if isinstance(value, str):
        return value.encode()
    return b"" if value is None else encoded(value)


def timer_of(body: Body) -> TimerData:
    return body["due"], body["number"], body["job"], body["merchant"], body["subject"]


def _reply_key(names: list[str]) -> ReplyKey:
    merchant_id, method, path, key = names
    return merchant_id, method, path, key


def _settings(body: Body, name: str) -> SandboxSettings | None:
    return SandboxSettings(**body[name]) if name in body else None
