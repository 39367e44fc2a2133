"""Records and events many to a line, as a store has them: they are read in half the time.

A lot of records is a line `records` with a list for each member; one of events a list of their members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

from ..events.log import Event
from ..kernel.record import NO_EXTRAS, Body, Extras, Record
from ..store.table import parted, place, whole
from ..store.tables import SHARED
from .parts import Unreadable
from .writing import CREATED


def records_in(lot: Body, known: dict[bytes, bytes]) -> list[Record]:
    """The records of a line; `known` is as for `parted`."""
    keys = list(map(place, lot["created"], lot["ids"]))
    public, hidden = map(str.encode, lot["public"]), map(str.encode, lot["hidden"])
    if lot["table"] in SHARED:
        parts = [parted(lot["table"], part, known) for part in hidden]
        rows = zip(lot["ids"], keys, lot["versions"], public, parts, strict=True)
        return [Record(ident, key, version, shown, *part) for ident, key, version, shown, part in rows]
    shared = repeat(b"", len(keys))
    return list(map(Record._make, zip(lot["ids"], keys, lot["versions"], public, hidden, shared, strict=True)))


def events_in(lot: list[list[Any]], shown: Sequence[bytes]) -> Iterator[Event]:
    """The events of a line; `shown` is what the records of the state show, in their order. Raises Unreadable."""
    for *members, resource, hidden, names, others in lot:
        if names and hidden is None:
            raise Unreadable(f"event {members[0]} names members of nothing")
        extras = Extras(tuple(names), tuple(map(tuple, others))) if names or others else NO_EXTRAS
        public = shown[resource] if isinstance(resource, int) else resource.encode()
        yield Event._make((*members, public, b"" if hidden is None else hidden.encode(), extras))


def columns(table: str, records: Sequence[Record]) -> Body:
    """The records of a line."""
    return {
        "table": table,
        "ids": [record.id for record in records],
        "created": [record.key >> CREATED for record in records],
        "versions": [record.version for record in records],
        "public": [record.public.decode() for record in records],
        "hidden": [whole(table, record).decode() for record in records],
    }


def event_row(event: Event, shown: int | None) -> list[Any]:
    """An event of a line; `shown` is the place of the record that it shows, if it shows one as it is."""
    resource = event.resource.decode() if shown is None else shown
    return [*event[:7], resource, event.hidden.decode() or None, event.extras.names, event.extras.others]
