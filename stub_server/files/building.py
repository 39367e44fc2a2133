"""A world made of a state: its records with their indexes, and everything else that steps change."""

from __future__ import annotations

from ..engine.sandbox import Sandbox
from ..events.log import EventLog
from ..kernel.clock import ClockState
from ..seeding.keys import MAIN_ID, pair_of
from ..store.memory import Store
from .state import WorldState


def build(world: Sandbox, state: WorldState, secret: bytes, clock: ClockState) -> None:
    """Fill an empty world with a state; its log goes on from there.

    Raises KeyError, TypeError or ValueError for records that lack what an index reads.
    """
    for ident, owned in state.owned.items():
        store = world.stores[ident] = Store(owned.merchant, world.rules.layout)
        store.rebuild({name: owned.rows.get(name, {}) for name in store.tables})
        store.usage, store.unrecorded = dict(owned.usage), dict(owned.unrecorded)
    world.home = state.home
    world.settings = state.settings or world.settings
    world.first_settings = state.first_settings or world.first_settings
    world.events = EventLog.of(state.events, state.raised)
    for timer in state.timers.values():
        world.timers.put(timer)
    world.timers.last = state.timers_last
    for key, saved in state.replies.items():
        world.replies.put(key, saved)
    public_key, private_key = pair_of(secret, world.seed, MAIN_ID, world.name)
    world.credentials = {"public_key": public_key, "private_key": private_key}
    world.sample, world.personas = dict(state.sample), dict(state.personas)
    world.seeded_keys = state.seeded_keys
    world.ids.position, world.ids.event_salt = state.position, state.event_salt
    world.clock.set(clock)
    world.recorded_clock = clock
    world.log = world.log.fresh(state.step)
