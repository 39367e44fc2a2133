"""The seeded past as events: the sandbox's event log holds what happened since somebody listens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

import orjson

from ..events.log import Event, EventLog, beside
from ..kernel.record import exact
from ..store.memory import Store
from .market import Told


def record(
    told: Iterable[Told], log: EventLog, rng: Random, store: Store, payload_keys: Mapping[str, str]
) -> list[tuple[Event, int]]:
    """Append what was told, in the order of its time; answers each event with its place in the world's history."""
    events = []
    for moment in sorted(told, key=lambda moment: moment.at):
        event = Event(
            f"evt_{rng.getrandbits(104):026x}",
            moment.type,
            moment.at,
            store.merchant.id,
            payload_keys[moment.type],
            moment.public["id"],
            moment.project,
            _bytes(store, moment),
            beside(moment.beside),
        )
        log.append(event)
        events.append((event, log.raised))
    return events


def _bytes(store: Store, moment: Told) -> bytes:
    """The record as it was; when it still is so, the very bytes of the store."""
    data = orjson.dumps(moment.public)
    stored = store.tables[moment.table].find(moment.public["id"])
    return stored.json if stored is not None and stored.json == data else exact(data)
