"""The state of a sandbox as plain data: captured from it, changed by steps without rules or indexes, built into one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..engine.bounded import Replies
from ..engine.sandbox import Sandbox
from ..engine.step import Part, SandboxSettings, Step
from ..events.log import EventLog
from ..kernel.clock import ClockState
from ..kernel.ids import Position
from ..kernel.record import Record
from ..kernel.timers import TimerData
from ..seeding.keys import MAIN_ID, pair_of
from ..store.memory import Merchant, Store, Usage

HEAD = (
    "name", "scenario", "seed", "home", "step", "clock", "position", "event_salt", "events_raised", "timers_set",
    "sample", "personas", "seeded_keys",
)  # fmt: skip
"""The members of a state that a line `sandbox` has, beside its settings."""


@dataclass(slots=True)
class Owned:
    """The data of one merchant: records by table and key, usage of API keys, and usage that no step has recorded."""

    merchant: Merchant
    rows: dict[str, dict[int, Record]]
    usage: dict[str, Usage] = field(default_factory=dict)
    unrecorded: dict[str, Usage | None] = field(default_factory=dict)

    def recorded(self, key: str) -> Usage | None:
        """How a key was used, as the newest step says."""
        return self.unrecorded[key] if key in self.unrecorded else self.usage.get(key)

    def change(self, part: Part) -> None:
        for name, record in part.drops:
            del self.rows[name][record.key]
        for name, record, _ in part.puts:
            self.rows.setdefault(name, {})[record.key] = record
        for key, usage, _ in part.used:
            _set(self.usage, key, usage)
            self.unrecorded.pop(key, None)


@dataclass(slots=True)
class SandboxState:
    """Everything that steps change in a sandbox, and what it was seeded with; `step` is the number of the newest one.

    `timers_set` is the number of the newest timer. The private halves of keys are in no state: those of seeded keys
    follow from the server's secret.
    """

    name: str
    scenario: str
    seed: int
    home: str
    step: int
    clock: ClockState
    position: Position
    event_salt: int
    timers_set: int
    sample: Mapping[str, str]
    personas: Mapping[str, str]
    seeded_keys: frozenset[str]
    owned: dict[str, Owned] = field(default_factory=dict)
    events: EventLog = field(default_factory=EventLog)
    timers: dict[int, TimerData] = field(default_factory=dict)
    replies: Replies = field(default_factory=Replies)
    settings: SandboxSettings | None = None
    first_settings: SandboxSettings | None = None
    """None in files of older formats: then they are those of the server."""

    @property
    def events_raised(self) -> int:
        """How many events there ever were."""
        return self.events.raised

    def fold(self, step: Step) -> None:
        """Apply a step, which must be the next one."""
        restored = step.restored
        self._change(step.parts, None if restored is None else restored.merchants_after)
        if restored is not None:
            self.events.exchange(restored.events, restored.raised_after)
            self.replies.exchange(restored.replies)
        for event in step.events:
            self.events.append(event)
        for key, _ in step.forgotten_replies:
            self.replies.drop(key)
        if step.saved is not None:
            self.replies.put(*step.saved)
        self._exchange(step.timers_fired, step.timers_set)
        self.timers_set = max([self.timers_set, *(timer[1] for timer in step.timers_set)])
        self.settings = step.settings or self.settings
        self.clock, self.position, self.step = step.clock, step.position, step.number

    def unfold(self, step: Step) -> None:
        """Undo the newest step. Usage of keys since then counts as unrecorded."""
        restored = step.restored
        self._change([part.mirrored for part in step.parts], None if restored is None else restored.merchants_before)
        if restored is not None:
            self.events.exchange(restored.events.mirrored, restored.raised_before)
            self.replies.exchange(restored.replies.mirrored)
        self.events.retract(len(step.events), step.forgotten_events)
        if step.saved is not None:
            self.replies.drop(step.saved[0])
        self.replies.put_back(step.forgotten_replies)
        self._exchange(step.timers_set, step.timers_fired)
        self.timers_set = step.timers_before
        if step.settings is not None:
            self.settings = step.settings_before
        self.clock, self.position, self.step = step.clock_before, step.position_before, step.number - 1

    def _change(self, parts: Iterable[Part], merchants: Sequence[str] | None) -> None:
        """Change records; `merchants` are all of an earlier state that is restored."""
        if merchants is not None:
            self.forget_unrecorded()
        for part in parts:
            owned = self.owned[part.merchant.id] = self.owned.get(part.merchant.id) or Owned(part.merchant, {})
            owned.change(part)
            if part.closes:
                del self.owned[part.merchant.id]
        if merchants is not None:
            self.owned = {ident: self.owned[ident] for ident in merchants}

    def _exchange(self, gone: Iterable[TimerData], come: Iterable[TimerData]) -> None:
        for timer in gone:
            self.timers.pop(timer[1], None)
        for timer in come:
            self.timers[timer[1]] = timer

    def forget_unrecorded(self) -> dict[str, dict[str, Usage]]:
        """Reduce the usage of keys to what steps have recorded; returns the rest, by merchant and key."""
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


def capture(sandbox: Sandbox) -> SandboxState:
    """A sandbox's state as it is now. Nothing that it shares with the sandbox changes any more."""
    return SandboxState(
        sandbox.name,
        sandbox.scenario,
        sandbox.seed,
        sandbox.home,
        sandbox.log.number,
        sandbox.recorded_clock,
        sandbox.ids.position,
        sandbox.ids.event_salt,
        sandbox.timers.last,
        dict(sandbox.sample),
        dict(sandbox.personas),
        sandbox.seeded_keys,
        {
            ident: Owned(
                store.merchant,
                {name: table.rows.copy() for name, table in store.tables.items() if table.rows},
                dict(store.usage),
                dict(store.unrecorded),
            )
            for ident, store in sandbox.stores.items()
        },
        sandbox.events.copy(),
        sandbox.timers.by_number(),
        sandbox.replies.copy(),
        sandbox.settings,
        sandbox.first_settings,
    )


def build(sandbox: Sandbox, state: SandboxState, secret: bytes) -> None:
    """Fill an empty sandbox with a state; its log continues from there.

    Raises KeyError, TypeError or ValueError for records that lack what an index reads.
    """
    for ident, owned in state.owned.items():
        store = sandbox.stores[ident] = Store(owned.merchant, sandbox.rules.layout)
        store.rebuild({name: owned.rows.get(name, {}) for name in store.tables})
        store.usage, store.unrecorded = dict(owned.usage), dict(owned.unrecorded)
    sandbox.home = state.home
    sandbox.settings = state.settings or sandbox.settings
    sandbox.first_settings = state.first_settings or sandbox.first_settings
    sandbox.events, sandbox.replies = state.events.copy(), state.replies.copy()
    for timer in state.timers.values():
        sandbox.timers.put(timer)
    sandbox.timers.last = state.timers_set
    public_key, private_key = pair_of(secret, sandbox.seed, MAIN_ID, sandbox.name)
    sandbox.credentials = {"public_key": public_key, "private_key": private_key}
    sandbox.sample, sandbox.personas = dict(state.sample), dict(state.personas)
    sandbox.seeded_keys = state.seeded_keys
    sandbox.ids.position, sandbox.ids.event_salt = state.position, state.event_salt
    sandbox.clock.set(state.clock)
    sandbox.recorded_clock = state.clock
    sandbox.log = sandbox.log.fresh(state.step)


class Snapshot(NamedTuple):
    """A state with a name: a copy of a sandbox that nobody changes.

    `now` is the instant (ms) that its clock showed, `created_at` the machine's. `size` is about how many bytes it may
    keep in memory, once that was measured.
    """

    name: str
    description: str | None
    now: int
    created_at: int
    sandbox: Sandbox
    size: int = 0
