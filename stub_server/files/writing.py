"""A sandbox's state and its steps as lines of JSON. They hold results, not inputs: reading them runs no rule.

A state is a line `sandbox`, then for each merchant a line `merchant` and one `record` for each of the records, then
lines `event`, `timer` and `reply`. A `step` names what it replaced by id alone: the state that it is applied to has
it. Records appear as the JSON that they are, a saved reply's body as text. An event that shows a record as it is names
its index among the records, from 0. The same state gives the same lines.
`fixtures/sandbox-file.yaml` describes what each line holds. `reading.py` is the way back.

A store has records and events many to a line, which is read in half the time, and lines in chunks. Equal parts of two
states give equal chunks, which are stored once. So a chunk ends where the id of a record says so, and not after a
number of them: a record that is added or deleted changes the chunk that it is in and no other one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

import orjson
from orjson import Fragment

from ..engine.step import Drop, Put, ReplyKey, Restored, Saved, Step
from ..events.log import Event
from ..kernel.record import Body, Record
from ..store.table import whole
from .state import HEAD, Owned, SandboxState

GROUP = 64  # events or timers of a line in a chunk, and about so many records
MOST_GROUP = 512  # records
LEAST, MOST = 256 * 1024, 4 * 1024 * 1024  # bytes of a chunk, before it is compressed
_ENDS = 8  # one line of records in so many begins a chunk
CREATED = 128  # bits of a record's key before the time of its creation
EVENT = ("id", "type", "at", "merchant", "key", "subject", "project", "resource", "hidden", "names", "others")
TIMER = ("due", "number", "job", "merchant", "subject")
Change = Callable[[str, Record], Record]
"""(table, record) -> the record as it is to be written."""
Part = Callable[[bytes], Any]
"""How JSON is put in a line: as itself, or as text, which is faster to read."""


def as_it_is(table: str, record: Record) -> Record:
    """A Change that changes nothing."""
    return record


def line_of(kind: str, body: Body) -> bytes:
    return orjson.dumps({kind: body})


def state_lines(state: SandboxState, change: Change = as_it_is) -> Iterator[bytes]:
    yield sandbox_line(state)
    places: dict[bytes, int] = {}
    count = 0
    for owned in state.owned.values():
        yield merchant_line(owned)
        for name in sorted(owned.rows):
            for _, record in sorted(owned.rows[name].items()):
                places[record.public] = count
                count += 1
                yield line_of("record", _record(name, change(name, record), Fragment))
    for event in state.events:
        yield line_of("event", _event(event, Fragment, places.get(event.resource)))
    for timer in sorted(state.timers.values()):
        yield line_of("timer", _timers([timer])[0])
    for reply in state.replies.items():
        yield line_of("reply", _reply(*reply))


def sandbox_line(state: SandboxState) -> bytes:
    settings = {"settings": state.settings, "first_settings": state.first_settings}
    body = {name: getattr(state, name) for name in HEAD}
    body |= {"clock": state.clock._asdict(), "event_salt": f"{state.event_salt:x}"}
    body |= {"seeded_keys": sorted(state.seeded_keys)}
    body |= {name: each._asdict() for name, each in settings.items() if each is not None}
    return line_of("sandbox", body)


def merchant_line(owned: Owned) -> bytes:
    usage = {"usage": dict(sorted(owned.usage.items())), "unrecorded": dict(sorted(owned.unrecorded.items()))}
    return line_of("merchant", asdict(owned.merchant) | usage)


def step_line(step: Step, change: Change = as_it_is, part: Part = Fragment, kind: str = "step") -> bytes:
    changes = {
        **_changes(step.puts, step.drops, change, part),
        "events": [_event(event, part, *_places(event, step.puts)) for event in step.events],
        "forgotten_events": len(step.forgotten_events),
        "timers": _timers(step.timers_set),
        "taken": [timer[1] for timer in step.timers_fired],
        "used": {key: after for key, after, _ in step.used},
        "saved": None if step.saved is None else _reply(*step.saved),
        "forgotten_replies": [key for key, _ in step.forgotten_replies],
        "settings": None if step.settings is None else step.settings._asdict(),
        "restored": None if step.restored is None else _restored(step.restored, change, part),
    }
    body = {
        "number": step.number,
        "at": step.at,
        "cause": step.cause._asdict(),
        "merchant": asdict(step.merchant) if step.opens_store else step.merchant.id,
        "clock": step.clock._asdict(),
        "position": step.position,
        **{name: value for name, value in changes.items() if value},
        "size": step.size,
    }
    return line_of(kind, body)


def _restored(restored: Restored, change: Change, part: Part) -> Body:
    """The changes of restoring an earlier state. Of the ends of lists that were there before, only their length."""
    events, replies = restored.events, restored.replies
    return {
        "parts": [
            {
                "merchant": asdict(own.merchant),
                "opens": own.opens,
                "closes": own.closes,
                **_changes(own.puts, own.drops, change, part),
                "used": {key: after for key, after, _ in own.used},
            }
            for own in restored.parts
        ],
        "merchants": restored.merchants_after,
        "events_raised": restored.raised_after,
        "events_gone": [len(events.oldest_before), len(events.newest_before)],
        "events_back": [[_event(event, part) for event in end] for end in (events.oldest_after, events.newest_after)],
        "replies_gone": [len(replies.oldest_before), len(replies.newest_before)],
        "replies_back": [[_reply(*reply) for reply in end] for end in (replies.oldest_after, replies.newest_after)],
    }


def _changes(puts: Sequence[Put], drops: Sequence[Drop], change: Change, part: Part) -> Body:
    return {
        "puts": [_record(name, change(name, record), part) for name, record, _ in puts],
        "drops": [{"table": name, "id": record.id, "created": record.key >> CREATED} for name, record in drops],
    }


def _places(event: Event, puts: Sequence[Put]) -> tuple[int | None, int | None]:
    """Which versions of the same step an event shares its two parts with."""
    resource = hidden = None
    for place, (_, record, _) in enumerate(puts):
        resource = place if event.resource is record.public else resource
        hidden = place if event.hidden is record.hidden else hidden
    return resource, hidden


def _record(table: str, record: Record, part: Part) -> Body:
    return {
        "table": table,
        "id": record.id,
        "created": record.key >> CREATED,
        "version": record.version,
        "public": part(record.public),
        "hidden": part(whole(table, record)),
    }


def _event(event: Event, part: Part, resource: int | None = None, hidden: int | None = None) -> Body:
    """An event; a part that it shares with a record is given as that record's index."""
    shown = part(event.resource) if resource is None else resource
    kept = (part(event.hidden) if event.hidden else None) if hidden is None else hidden
    return dict(zip(EVENT, (*event[:7], shown, kept, *event.extras), strict=True))


def _timers(timers: Sequence[Sequence[Any]]) -> list[Body]:
    return [dict(zip(TIMER, timer, strict=True)) for timer in timers]


def _reply(key: ReplyKey, saved: Saved) -> Body:
    return {
        "key": key,
        "fingerprint": saved.fingerprint.hex(),
        "expires": saved.expires,
        "status": saved.status,
        "body": saved.body.decode(),
        "headers": [[name.decode("latin-1"), value.decode("latin-1")] for name, value in saved.headers],
    }


def _columns(table: str, records: Sequence[Record]) -> Body:
    """Records of a line `records`: a list for each member."""
    return {
        "table": table,
        "ids": [record.id for record in records],
        "created": [record.key >> CREATED for record in records],
        "versions": [record.version for record in records],
        "public": [record.public.decode() for record in records],
        "hidden": [whole(table, record).decode() for record in records],
    }


# -- a state as chunks of lines


def chunks_of(state: SandboxState) -> Iterator[bytes]:
    return _grouped(_chunk_lines(state))


def grouped(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines as chunks, which may end anywhere."""
    return _grouped(item for line in lines for item in (LEAST, line))


def _grouped(items: Iterable[bytes | int]) -> Iterator[bytes]:
    """Lines as chunks; a number is a place where a chunk may end that has so many bytes."""
    lines: list[bytes] = []
    size = 0
    for item in items:
        if isinstance(item, bytes):
            lines.append(item)
            size += len(item) + 1
        elif lines and size >= item:
            yield b"\n".join(lines)
            lines, size = [], 0
    yield b"\n".join(lines)


def _chunk_lines(state: SandboxState) -> Iterator[bytes | int]:
    """The lines of a state, and between them how large a chunk must be to end there."""
    yield sandbox_line(state)
    yield 0
    places: dict[bytes, int] = {}
    count = 0
    for owned in state.owned.values():
        yield merchant_line(owned)
        yield 0
        for name in sorted(owned.rows):
            rows = owned.rows[name]
            for group in _groups(sorted(rows)):
                yield LEAST if not group[0] // GROUP % _ENDS else MOST
                records = [rows[key] for key in group]
                places.update(zip([record.public for record in records], range(count, count + len(group)), strict=True))
                count += len(group)
                yield orjson.dumps({"records": _columns(name, records)})
        yield LEAST
    events = (_event(event, bytes.decode, places.get(event.resource)) for event in state.events)
    for kind, items in (
        ("events", ([*event.values()] for event in events)),
        ("timers", map(tuple, sorted(state.timers.values()))),  # some are named, which orjson does not take
    ):
        while many := list(islice(items, GROUP)):
            yield orjson.dumps({kind: many})
            yield LEAST
    for reply in state.replies.items():
        yield line_of("reply", _reply(*reply))
        yield LEAST


def _groups(keys: list[int]) -> Iterator[list[int]]:
    """The keys of records for a line each: one begins with about every 64th id."""
    begin = 0
    for place in range(1, len(keys)):
        if not keys[place] % GROUP or place - begin >= MOST_GROUP:
            yield keys[begin:place]
            begin = place
    if keys:
        yield keys[begin:]
