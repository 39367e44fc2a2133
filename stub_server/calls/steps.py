"""Steps as they are shown: what each one changed, and the events that it raised."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from ..engine.step import Part, Step
from ..kernel.clock import iso
from ..kernel.record import Body

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


def _changes(step: Step) -> Iterator[_Change]:
    for part in parts_of(step):
        for table, record, before in part.puts:
            yield _Change(table, record.id, "created" if before is None else "updated")
        for drop in part.drops:
            yield _Change(drop.table, drop.record.id, "deleted")


def _count(step: Step) -> int:
    return sum(len(part.puts) + len(part.drops) for part in parts_of(step))
