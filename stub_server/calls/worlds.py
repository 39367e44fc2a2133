"""A sandbox as the control surface shows it."""

from ..kernel.clock import iso
from ..kernel.record import Body
from ..worlds.entry import Entry
from .beginning import credentials_of
from .call import Call


def summary_of(call: Call, entry: Entry) -> Body:
    """A sandbox without its credentials."""
    world = entry.world
    now = world.clock.read()
    return {
        "name": world.name,
        "scenario": world.scenario,
        "seed": world.seed,
        "parent": entry.parent,
        "step": world.log.number,
        "now": iso(now),
        "frozen": world.clock.frozen,
        "records": sum(sum(store.counts().values()) for store in world.stores.values()),
        "base_url": f"{call.server.url}/s/{world.name}",
        "created_at": iso(entry.created_at),
        "last_used_at": iso(entry.last_used_at),
        "expires_at": None if entry.expires_at is None else iso(entry.expires_at),
    }


def shown(call: Call, entry: Entry) -> Body:
    """A sandbox with its credentials."""
    return {**summary_of(call, entry), "credentials": credentials_of(call, entry.world, f"/s/{entry.world.name}")}
