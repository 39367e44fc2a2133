"""The state of a world as plain data: taken from a world, moved by steps without rules or indexes."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..engine.sandbox import Sandbox
from ..engine.step import Part, ReplyKey, Restored, SandboxSettings, Saved, Step
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

    def change(self, part: Part) -> None:
        """Have other records, and other usage as a step says."""
        for name, record in part.drops:
            del self.rows[name][record.key]
        for name, record, _ in part.puts:
            self.rows.setdefault(name, {})[record.key] = record
        for key, usage, _ in part.used:
            _set(self.usage, key, usage)
            self.unrecorded.pop(key, None)


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

    def fold(self, step: Step) -> None:
        """Have what a step changed, which must be the next one."""
        told = _difference(step)
        self._change(told.parts, told.merchants_after, told.events, told.raised_after, told.replies)
        self._exchange(step.timers_fired, step.timers_set)
        self.timers_last = max([self.timers_last, *(timer[1] for timer in step.timers_set)])
        if step.settings is not None:
            self.settings = step.settings
        self.clock, self.position, self.step = step.clock, step.position, step.number

    def unfold(self, step: Step) -> None:
        """Undo the newest step. What keys were used since counts as recorded by none."""
        told = _difference(step)
        parts = [part.mirrored for part in told.parts]
        self._change(parts, told.merchants_before, told.events.mirrored, told.raised_before, told.replies.mirrored)
        self._exchange(step.timers_set, step.timers_fired)
        self.timers_last = step.timers_before
        if step.settings is not None:
            self.settings = step.settings_before
        self.clock, self.position, self.step = step.clock_before, step.position_before, step.number - 1

    def _change(
        self, parts: Iterable[Part], merchants: Sequence[str], events: Ends, raised: int, replies: Ends
    ) -> None:
        """Have other records, events and replies. `merchants` are those of another time, or none where they stay."""
        if merchants:
            self.forget_unrecorded()
        for part in parts:
            owned = self.owned[part.merchant.id] = self.owned.get(part.merchant.id) or Owned(part.merchant, {})
            owned.change(part)
            if part.closes:
                del self.owned[part.merchant.id]
        if merchants:
            self.owned = {ident: self.owned[ident] for ident in merchants}
        for _ in events.newest_before[: len(self.events)]:
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
            self.replies.pop(key, None)
            self.replies[key] = saved

    def _exchange(self, gone: Iterable[TimerData], come: Iterable[TimerData]) -> None:
        for timer in gone:
            self.timers.pop(timer[1], None)
        for timer in come:
            self.timers[timer[1]] = timer

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


def _difference(step: Step) -> Restored:
    """What a step changes of records, events and replies. One that restores no state changes no order of merchants."""
    if step.restored is not None:
        return step.restored
    part = Part(step.merchant, step.opens_store, False, step.puts, step.drops, step.used)
    events = Ends(step.forgotten_events, (), (), step.events)
    replies = Ends(step.forgotten_replies, (), (), () if step.saved is None else (step.saved,))
    raised = step.events_before
    return Restored((part,), (), (), events, raised, raised + len(step.events), replies)


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
