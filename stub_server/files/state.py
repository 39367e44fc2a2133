"""The state of a world as plain data: taken from a world, moved by steps without rules or indexes."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..engine.rules import SandboxSettings
from ..engine.sandbox import Sandbox
from ..engine.step import Drop, Part, Put, ReplyKey, Saved, Step, Used
from ..events.log import Event
from ..kernel.clock import ClockState
from ..kernel.ends import Ends
from ..kernel.ids import Position
from ..kernel.record import Record
from ..kernel.timers import TimerData
from ..store.memory import Merchant, Usage


@dataclass(slots=True)
class Owned:
    """What one merchant has: records by table and place; how keys were used, and what no step has recorded of it."""

    merchant: Merchant
    rows: dict[str, dict[int, Record]]
    usage: dict[str, Usage] = field(default_factory=dict)
    unrecorded: dict[str, Usage | None] = field(default_factory=dict)

    def recorded(self, key: str) -> Usage | None:
        """How a key was used, as the newest step says."""
        return self.unrecorded[key] if key in self.unrecorded else self.usage.get(key)

    def fold(self, puts: Iterable[Put], drops: Iterable[Drop], used: Iterable[Used]) -> None:
        """Have what a step changed."""
        for name, record in drops:
            del self.rows[name][record.key]
        for name, record, _ in puts:
            self.rows.setdefault(name, {})[record.key] = record
        for key_id, after, _ in used:
            self.set_use(key_id, after)

    def set_use(self, key: str, usage: Usage | None) -> None:
        """Have a key been used so often, as a step says."""
        _set(self.usage, key, usage)
        self.unrecorded.pop(key, None)

    def unfold(self, puts: Iterable[Put], drops: Iterable[Drop], used: Iterable[Used]) -> None:
        """Have what a step replaced."""
        for name, record, before in puts:
            if before is None:
                del self.rows[name][record.key]
            else:
                self.rows[name][record.key] = before
        for name, record in drops:
            self.rows.setdefault(name, {})[record.key] = record
        for key_id, _, before_use in used:
            _set(self.usage, key_id, before_use)


@dataclass(slots=True)
class WorldState:
    """Everything that steps change in a world, and what it was seeded with; `step` is the number of the newest one.

    `raised` is how many events there ever were, `timers_last` the number of the newest timer. The
    private halves of keys are in no state: those of seeded keys follow from the server's secret.
    """

    name: str
    scenario: str
    seed: int
    home: str
    step: int
    clock: ClockState
    position: Position
    event_salt: int
    raised: int
    timers_last: int
    sample: Mapping[str, str]
    personas: Mapping[str, str]
    seeded_keys: frozenset[str]
    owned: dict[str, Owned] = field(default_factory=dict)
    events: deque[Event] = field(default_factory=deque)
    timers: dict[int, TimerData] = field(default_factory=dict)
    replies: OrderedDict[ReplyKey, Saved] = field(default_factory=OrderedDict)
    settings: SandboxSettings | None = None
    first_settings: SandboxSettings | None = None
    """None in files of before there were any: then they are those of the server."""

    @property
    def records(self) -> int:
        """How many records there are."""
        return sum(len(rows) for owned in self.owned.values() for rows in owned.rows.values())

    def fold(self, step: Step) -> None:
        """Have what a step changed, which must be the next one."""
        owned = self.owned.get(step.merchant.id)
        if owned is None:
            owned = self.owned[step.merchant.id] = Owned(step.merchant, {})
        owned.fold(step.puts, step.drops, step.used)
        if step.restored is not None:
            told = step.restored
            self._restore(told.parts, told.merchants_after, told.events, told.raised_after, told.replies)
        for _ in step.forgotten_events:
            self.events.popleft()
        self.events.extend(step.events)
        self.raised += len(step.events)
        for timer in step.timers_taken:
            self.timers.pop(timer[1], None)
        for timer in step.timers_set:
            self.timers[timer[1]] = timer
            self.timers_last = max(self.timers_last, timer[1])
        for key, _ in step.forgotten_replies:
            self.replies.pop(key, None)
        if step.saved is not None:
            self.replies.pop(step.saved[0], None)
            self.replies[step.saved[0]] = step.saved[1]
        if step.settings is not None:
            self.settings = step.settings
        self.clock, self.position, self.step = step.clock, step.position, step.number

    def unfold(self, step: Step) -> None:
        """Undo the newest step. What keys were used since counts as recorded by none."""
        if step.restored is not None:
            told = step.restored
            parts = [part.mirrored for part in told.parts]
            self._restore(parts, told.merchants_before, told.events.mirrored, told.raised_before, told.replies.mirrored)
        self.owned[step.merchant.id].unfold(step.puts, step.drops, step.used)
        for _ in range(min(len(step.events), len(self.events))):
            self.events.pop()
        self.events.extendleft(reversed(step.forgotten_events))
        self.raised -= len(step.events)
        for timer in step.timers_set:
            self.timers.pop(timer[1], None)
        for timer in step.timers_taken:
            self.timers[timer[1]] = timer
        self.timers_last = step.timers_before
        if step.saved is not None:
            self.replies.pop(step.saved[0], None)
        for key, saved in reversed(step.forgotten_replies):
            self.replies[key] = saved
            self.replies.move_to_end(key, last=False)
        if step.settings is not None:
            self.settings = step.settings_before
        self.clock, self.position, self.step = step.clock_before, step.position_before, step.number - 1
        if step.opens_store:
            del self.owned[step.merchant.id]

    def _restore(
        self, parts: Iterable[Part], merchants: Iterable[str], events: Ends, raised: int, replies: Ends
    ) -> None:
        """Have the records, events and replies of another time, of all merchants."""
        self.forget_unrecorded()
        for part in parts:
            owned = self.owned.get(part.merchant.id)
            if owned is None:
                owned = self.owned[part.merchant.id] = Owned(part.merchant, {})
            owned.fold(part.puts, part.drops, part.used)
        self.owned = {ident: self.owned[ident] for ident in merchants}
        for _ in events.newest_before:
            self.events.pop()
        for _ in events.oldest_before:
            self.events.popleft()
        self.events.extendleft(reversed(events.oldest_after))
        self.events.extend(events.newest_after)
        self.raised = raised
        for key, _ in (*replies.oldest_before, *replies.newest_before):
            self.replies.pop(key, None)
        for key, saved in reversed(replies.oldest_after):
            self.replies[key] = saved
            self.replies.move_to_end(key, last=False)
        for key, saved in replies.newest_after:
            self.replies[key] = saved

    def forget_unrecorded(self) -> dict[str, dict[str, Usage]]:
        """Have of keys' usage what steps have recorded alone; answers the rest, by merchant and key."""
        rest: dict[str, dict[str, Usage]] = {}
        for ident, owned in self.owned.items():
            if owned.unrecorded:
                rest[ident] = {key: owned.usage[key] for key in owned.unrecorded if key in owned.usage}
                for key, before in owned.unrecorded.items():
                    _set(owned.usage, key, before)
                owned.unrecorded = {}
        return rest

    def use(self, merchant_id: str, key: str, usage: Usage) -> None:
        """Count usage of a key that no step has recorded."""
        owned = self.owned[merchant_id]
        owned.unrecorded.setdefault(key, owned.usage.get(key))
        owned.usage[key] = usage


def _set(usage: dict[str, Usage], key: str, value: Usage | None) -> None:
    if value is None:
        usage.pop(key, None)
    else:
        usage[key] = value


def capture(world: Sandbox) -> WorldState:
    """A world's state as it is now. Nothing that is shared with the world changes any more."""
    return WorldState(
        world.name,
        world.scenario,
        world.seed,
        world.home,
        world.log.number,
        world.recorded_clock,
        world.ids.position,
        world.ids.event_salt,
        world.events.raised,
        world.timers.last,
        dict(world.sample),
        dict(world.personas),
        world.seeded_keys,
        {
            ident: Owned(
                store.merchant,
                {name: table.rows.copy() for name, table in store.tables.items() if table.rows},
                dict(store.usage),
                dict(store.unrecorded),
            )
            for ident, store in world.stores.items()
        },
        deque(world.events),
        world.timers.by_number(),
        OrderedDict(world.replies.items()),
        world.settings,
        world.first_settings,
    )
