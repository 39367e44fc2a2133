"""A sandbox's state and its steps as lines of JSON. They hold results, not inputs: reading them runs no rule.

A state is a line `sandbox`, then for each merchant a line `merchant` and one `record` for each of the records, then
lines `event`, `timer` and `reply`. A `step` names what it replaced by id alone: the state that it is folded into has
it. Records stand as the JSON that they are, a saved reply's body as text. An event that shows a record as it is tells
its place among the records, from 0 on. The same state gives the same lines.
`fixtures/sandbox-file.yaml` says what each line holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import orjson
from orjson import Fragment

from ..engine.step import Put, ReplyKey, Restored, Saved, Step
from ..events.log import Event
from ..kernel.record import Body, Record
from ..kernel.timers import TimerData
from ..store.table import whole
from .state import Owned, WorldState

CREATED = 128  # bits of a record's place before the time of its creation
Change = Callable[[str, Record], Record]
"""(table, record) -> the record as it is to be written."""


Part = Callable[[bytes], Any]
"""How JSON stands in a line: as itself, or as text, which is faster to read."""


def as_it_is(table: str, record: Record) -> Record:
    """A Change that changes nothing."""
    return record


def state_lines(state: WorldState, change: Change = as_it_is) -> Iterator[bytes]:
    """A state, line by line."""
    yield world_line(state)
    places: dict[bytes, int] = {}
    count = 0
    for owned in state.owned.values():
        yield merchant_line(owned)
        for name in sorted(owned.rows):
            rows = owned.rows[name]
            for key in sorted(rows):
                places[rows[key].public] = count
                count += 1
                yield _line("record", _record(name, change(name, rows[key]), Fragment))
    for event in state.events:
        place = places.get(event.resource)
        shown = Fragment(event.resource) if place is None else place
        yield _line("event", _event(event, shown, _told(event.hidden, Fragment)))
    for timer in sorted(state.timers.values()):
        yield _line("timer", _timer(timer))
    for reply in state.replies.items():
        yield reply_line(*reply)


def world_line(state: WorldState) -> bytes:
    """What a state begins with."""
    told = [("settings", state.settings), ("first_settings", state.first_settings)]
    return _line(
        "sandbox",
        {
            "name": state.name,
            "scenario": state.scenario,
            "seed": state.seed,
            "home": state.home,
            "step": state.step,
            "clock": state.clock._asdict(),
            "position": state.position,
            "event_salt": f"{state.event_salt:x}",
            "events_raised": state.raised,
            "timers_set": state.timers_last,
            "sample": state.sample,
            "personas": state.personas,
            "seeded_keys": sorted(state.seeded_keys),
            **{name: settings._asdict() for name, settings in told if settings is not None},
        },
    )


def merchant_line(owned: Owned) -> bytes:
    """A merchant, before his records."""
    use = {"usage": dict(sorted(owned.usage.items())), "unrecorded": dict(sorted(owned.unrecorded.items()))}
    return _line("merchant", asdict(owned.merchant) | use)


def reply_line(key: ReplyKey, saved: Saved) -> bytes:
    """A saved reply."""
    return _line("reply", _reply(key, saved))


def step_line(step: Step, change: Change = as_it_is, part: Part = Fragment) -> bytes:
    """A step as one line."""
    told: Body = {
        "number": step.number,
        "at": step.at,
        "cause": step.cause._asdict(),
        "merchant": asdict(step.merchant) if step.opens_store else step.merchant.id,
        "clock": step.clock._asdict(),
        "position": step.position,
    }
    puts = step.puts
    if puts:
        told["puts"] = [_record(name, change(name, record), part) for name, record, _ in puts]
    if step.drops:
        told["drops"] = [{"table": name, "id": r.id, "created": r.key >> CREATED} for name, r in step.drops]
    if step.events:
        told["events"] = [_step_event(event, puts, part) for event in step.events]
    if step.forgotten_events:
        told["forgotten_events"] = len(step.forgotten_events)
    if step.timers_set:
        told["timers"] = [_timer(timer) for timer in step.timers_set]
    if step.timers_fired:
        told["taken"] = [timer[1] for timer in step.timers_fired]
    if step.used:
        told["used"] = {key: after for key, after, _ in step.used}
    if step.saved is not None:
        told["saved"] = _reply(*step.saved)
    if step.forgotten_replies:
        told["forgotten_replies"] = [key for key, _ in step.forgotten_replies]
    if step.settings is not None:
        told["settings"] = step.settings._asdict()
    if step.restored is not None:
        told["restored"] = _restored(step.restored, change, part)
    told["size"] = step.size
    return orjson.dumps({"step": told})


def _restored(restored: Restored, change: Change, part: Part) -> Body:
    """What restoring an earlier state changes: of the ends of lists that were there before only how long they are."""
    events, replies = restored.events, restored.replies
    return {
        "parts": [
            {
                "merchant": asdict(own.merchant),
                "opens": own.opens,
                "closes": own.closes,
                "puts": [_record(name, change(name, record), part) for name, record, _ in own.puts],
                "drops": [{"table": name, "id": r.id, "created": r.key >> CREATED} for name, r in own.drops],
                "used": {key: after for key, after, _ in own.used},
            }
            for own in restored.parts
        ],
        "merchants": restored.merchants_after,
        "events_raised": restored.raised_after,
        "events_gone": [len(events.oldest_before), len(events.newest_before)],
        "events_back": [
            [_event(event, part(event.resource), _told(event.hidden, part)) for event in end]
            for end in (events.oldest_after, events.newest_after)
        ],
        "replies_gone": [len(replies.oldest_before), len(replies.newest_before)],
        "replies_back": [[_reply(*reply) for reply in end] for end in (replies.oldest_after, replies.newest_after)],
    }


def _step_event(event: Event, puts: tuple[Put, ...], part: Part) -> Body:
    """An event of a step; what it shares with a version of the same step is told by that version's place."""
    resource: Any = None
    hidden: Any = None
    for place, (_, record, _) in enumerate(puts):
        if event.resource is record.public:
            resource = place
        if event.hidden is record.hidden:
            hidden = place
    if resource is None:
        resource = part(event.resource)
    return _event(event, resource, _told(event.hidden, part) if hidden is None else hidden)


def use_line(merchant_id: str, key: str, usage: tuple[int, str]) -> bytes:
    """How a key has been used that no step has recorded: stands after the steps."""
    return _line("use", {"merchant": merchant_id, "key": key, "usage": usage})


def _line(kind: str, body: Body) -> bytes:
    return orjson.dumps({kind: body})


def _record(table: str, record: Record, part: Part) -> Body:
    return {
        "table": table,
        "id": record.id,
        "created": record.key >> CREATED,
        "version": record.version,
        "public": part(record.public),
        "hidden": part(whole(table, record)),
    }


def _event(event: Event, resource: Any, hidden: Any) -> Body:
    return {
        "id": event.id,
        "type": event.type,
        "at": event.at,
        "merchant": event.merchant_id,
        "key": event.key,
        "subject": event.subject,
        "project": event.project_id,
        "resource": resource,
        "hidden": hidden,
        "names": event.extras.names,
        "others": event.extras.others,
    }


def _told(data: bytes, part: Part) -> Any:
    return part(data) if data else None


def _timer(timer: TimerData) -> Body:
    due, number, job, merchant_id, subject = timer
    return {"due": due, "number": number, "job": job, "merchant": merchant_id, "subject": subject}


def _reply(key: ReplyKey, saved: Saved) -> Body:
    return {
        "key": key,
        "fingerprint": saved.fingerprint.hex(),
        "expires": saved.expires,
        "status": saved.status,
        "body": saved.body.decode(),
        "headers": [[name.decode("latin-1"), value.decode("latin-1")] for name, value in saved.headers],
    }
