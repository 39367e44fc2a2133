"""A state as a directory keeps it: records, events and timers many to a line, which is read in half the time.

A lot of records is a line `records` with a list for each member; one of events or timers a list of their members. The
other lines are those of `writing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Any, TypeVar

import orjson

from ..events.log import Event
from ..kernel.record import NO_EXTRAS, Body, Extras, Record
from ..store.table import parted, place, whole
from ..store.tables import APART
from .parts import Unreadable
from .state import WorldState
from .writing import CREATED, merchant_line, reply_line, world_line

LOT = 64  # to a line
T = TypeVar("T")


def lot_lines(state: WorldState) -> Iterator[bytes]:
    """A state, line by line."""
    yield world_line(state)
    places: dict[bytes, int] = {}
    count = 0
    for owned in state.owned.values():
        yield merchant_line(owned)
        for name in sorted(owned.rows):
            rows = owned.rows[name]
            for lot in _lots(sorted(rows)):
                records = [rows[key] for key in lot]
                places.update(zip([record.public for record in records], range(count, count + len(lot)), strict=True))
                count += len(lot)
                yield orjson.dumps({"records": _columns(name, records)})
    for events in _lots(state.events):
        yield orjson.dumps({"events": [_event(event, places.get(event.resource)) for event in events]})
    for timers in _lots(sorted(state.timers.values())):
        yield orjson.dumps({"timers": timers})
    for reply in state.replies.items():
        yield reply_line(*reply)


def records_in(lot: Body, known: dict[bytes, bytes]) -> list[Record]:
    """The records of a line; `known` is as for `parted`."""
    keys = list(map(place, lot["created"], lot["ids"]))
    public, hidden = map(str.encode, lot["public"]), map(str.encode, lot["hidden"])
    if lot["table"] in APART:
        parts = [parted(lot["table"], part, known) for part in hidden]
        rows = zip(lot["ids"], keys, lot["versions"], public, parts, strict=True)
        return [Record(ident, key, version, shown, *part) for ident, key, version, shown, part in rows]
    apart = repeat(b"", len(keys))
    return list(map(Record._make, zip(lot["ids"], keys, lot["versions"], public, hidden, apart, strict=True)))


def events_in(lot: list[list[Any]], shown: Sequence[bytes]) -> Iterator[Event]:
    """The events of a line; `shown` is what the records of the state show, in their order. Raises Unreadable."""
    for *members, resource, hidden, names, others in lot:
        if names and hidden is None:
            raise Unreadable(f"event {members[0]} names members of nothing")
        extras = Extras(tuple(names), tuple(map(tuple, others))) if names or others else NO_EXTRAS
        public = shown[resource] if isinstance(resource, int) else resource.encode()
        yield Event._make((*members, public, b"" if hidden is None else hidden.encode(), extras))


def _columns(table: str, records: Sequence[Record]) -> Body:
    return {
        "table": table,
        "ids": [record.id for record in records],
        "created": [record.key >> CREATED for record in records],
        "versions": [record.version for record in records],
        "public": [record.public.decode() for record in records],
        "hidden": [whole(table, record).decode() for record in records],
    }


def _event(event: Event, shown: int | None) -> list[Any]:
    resource = event.resource.decode() if shown is None else shown
    return [*event[:7], resource, event.hidden.decode() or None, event.extras.names, event.extras.others]


def _lots(items: Iterable[T]) -> Iterator[list[T]]:
    every = iter(items)
    while lot := list(islice(every, LOT)):
        yield lot
