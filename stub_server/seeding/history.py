"""The seeded past as events: the sandbox's event log holds what happened since somebody listens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

import orjson

from ..events.log import Event, EventLog
from ..kernel.record import exact
from ..store.memory import Store
from .market import Told


def record(
    told: Iterable[Told], log: EventLog, rng: Random, store: Store, payload_keys: Mapping[str, str]
) -> list[tuple[Event, int]]:
    """Append what was told, in the order of its time; answers each event with its place in the world's history."""
    events = []
    for moment in sorted(told, key=lambda moment: moment.at):
        if moment.type not in payload_keys:
            continue  # a corrected contract has no such event
        resource, hidden = _bytes(store, moment)
        event = Event(
            f"evt_{rng.getrandbits(104):026x}",
            moment.type,
            moment.at,
            store.merchant.id,
            payload_keys[moment.type],
            moment.public["id"],
            moment.project,
            resource,
            hidden,
            moment.beside,
        )
        log.append(event)
        events.append((event, log.raised))
    return events


def _bytes(store: Store, moment: Told) -> tuple[bytes, bytes]:
    """The two parts of the record as it was; what is still so is the very bytes of the store."""
    stored = store.tables[moment.table].find(moment.public["id"])
    resource, hidden = orjson.dumps(moment.public), b""
    resource = stored.json if stored is not None and stored.json == resource else exact(resource)
    if moment.beside.names:
        members = {name: moment.hidden.get(name) for name in moment.beside.names}
        kept = {} if stored is None else orjson.loads(stored.hidden)
        if stored is not None and all(kept.get(name) == value for name, value in members.items()):
            hidden = stored.hidden
        else:
            hidden = exact(orjson.dumps(members))
    return resource, hidden
