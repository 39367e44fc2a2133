"""Steps as they are shown: what each one changed, and the events that it raised."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import orjson

from ..engine.bounded import Log
from ..engine.step import Part, Step
from ..kernel.clock import iso
from ..kernel.record import Body, Record

MOST_SHOWN = 200  # changes of a step, and events


class _Change(NamedTuple):
    resource: str
    id: str
    change: str


def shown_step(step: Step) -> Body:
    """A step in a list."""
    changes = list(islice(_changes(step), MOST_SHOWN))
    count = _count(step)
    return {
        "step": step.number,
        "at": iso(step.at),
        "cause": step.cause._asdict(),
        "changes": [change._asdict() for change in changes],
        "events": [{"id": event.id, "type": event.type} for event in step.events[:MOST_SHOWN]],
        "omitted": count - len(changes) + max(0, len(step.events) - MOST_SHOWN),
    }


def parts_of(step: Step) -> Iterable[Part | Step]:
    """What a step changed, merchant by merchant."""
    return (step,) if step.restored is None else step.restored.parts


class Version(NamedTuple):
    """A record after a step, None where the step deleted it, and as it was before.

    `step` is None for what was before the oldest step that is kept.
    """

    step: Step | None
    record: Record | None
    before: Record | None


def versions(log: Log, table: str, ident: str, present: Record | None) -> list[Version]:
    """The versions of a record, newest first; `present` is the one that the sandbox has now."""
    found = [version for step in reversed(log) for version in _written(step, table, ident)]
    oldest = found[-1].before if found else present
    return found if oldest is None else [*found, Version(None, oldest, None)]


def shown_version(version: Version) -> Body:
    """A version in a list."""
    step, record, before = version
    change = "deleted" if record is None else "created" if before is None else "updated"
    return {
        "step": None if step is None else step.number,
        "at": None if step is None else iso(step.at),
        "cause": None if step is None else step.cause._asdict(),
        "change": "earlier" if step is None else change,
        "body": None if record is None else orjson.Fragment(record.public),
    }


def _written(step: Step, table: str, ident: str) -> Iterator[Version]:
    """What a step made of a record."""
    for part in parts_of(step):
        for name, record, before in part.puts:
            if record.id == ident and name == table:
                yield Version(step, record, before)
        for drop in part.drops:
            if drop.record.id == ident and drop.table == table:
                yield Version(step, None, drop.record)


def _changes(step: Step) -> Iterator[_Change]:
    for part in parts_of(step):
        for table, record, before in part.puts:
            yield _Change(table, record.id, "created" if before is None else "updated")
        for drop in part.drops:
            yield _Change(drop.table, drop.record.id, "deleted")


def _count(step: Step) -> int:
    return sum(len(part.puts) + len(part.drops) for part in parts_of(step))
