"""A sandbox's state and its steps as lines of JSON, as they are written. They hold results: reading
them, which `reading.py` does, runs no rule.

A state is a line `sandbox`, then for each merchant a line `merchant` and one `record` for each of
the records, oldest first, then lines `event`, `timer` and `reply`. A `step` names what it replaced
by id alone: the state that it is applied to has it. Records appear as the JSON that they are, a
saved reply's body as text. An event that shows a record as it is names its index among the records,
from 0. The same state gives the same lines. `fixtures/sandbox-file.yaml` describes what each line
holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import orjson
from orjson import Fragment

from ..contract.secrets import REDACTED
from ..core.record import Body, Record
from ..engine.lists import Ends, Event, Saved
from ..engine.sandbox import Sandbox
from ..engine.step import Change, Part, Step
from ..engine.tables.table import encoded

PART = 1024 * 1024  # bytes of lines that a store compresses together
_EMPTY: tuple[Any, ...] = (None, (), [], {})
_USER = re.compile(r"^([^:/?#]+://)[^/?#]*@")  # the name and password before the host of an address
_OURS = ("content-", "user-agent", "webhook-")


def line_of(kind: str, body: Body) -> bytes:
    """A line: a JSON object with one member, its kind."""
    return orjson.dumps({kind: body})


class Writer:
    """Writes states and steps; without `secrets` also without saved replies."""

    def __init__(self, *, secrets: bool = True) -> None:
        self._secrets = secrets

    def state(self, sandbox: Sandbox) -> Iterator[bytes]:
        """The lines of a state."""
        yield line_of("sandbox", _sandbox(sandbox))
        places = {}
        count = 0
        for store in sandbox.stores.values():
            yield line_of(
                "merchant", asdict(store.merchant) | {"usage": dict(sorted(store.usage.items()))}
            )
            for name, table in sorted(store.tables.items()):
                for key in table.order:
                    record = table.rows[key]
                    places[record.public] = count
                    count += 1
                    yield line_of("record", self._record(name, record))
        for event in sandbox.events:
            yield line_of("event", _event(event, places.get(event.resource)))
        for timer in sandbox.timers.pending():
            yield line_of("timer", timer._asdict())
        if self._secrets:
            for reply in sandbox.replies:
                yield line_of("reply", _reply(reply))

    def step(self, step: Step, kind: str = "step") -> bytes:
        """The line of a step."""
        settings = step.after.settings
        return line_of(
            kind,
            _filled(
                {
                    "number": step.number,
                    "at": step.at,
                    "cause": step.cause._asdict(),
                    "clock": step.after.clock._asdict(),
                    "position": step.after.position,
                    "raised": step.after.events,
                    "parts": list(map(self._part, step.parts)),
                    "restores": step.restores or None,
                    "events": _ends(step.event_ends, lambda event: _shown(event, step.changes)),
                    "replies": _ends(step.reply_ends, _reply) if self._secrets else None,
                    "timers": [timer._asdict() for timer in step.timers_set],
                    "taken": [timer.seq for timer in step.timers_fired],
                    "settings": None if settings == step.before.settings else settings._asdict(),
                }
            ),
        )

    def _part(self, part: Part) -> Body:
        puts = []
        drops = []
        for table, before, after in part.changes:
            if after is not None:
                puts.append(self._record(table, after))
            elif before is not None:
                drops.append({"table": table, "id": before.id, "created": before.created})
        return _filled(
            {
                "merchant": part.merchant if part.opens else part.merchant.id,
                "closes": part.closes or None,
                "puts": puts,
                "drops": drops,
                "used": {key: after for key, after, _ in part.used},
            }
        )

    def _record(self, table: str, record: Record) -> Body:
        if not self._secrets:
            record = blanked(table, record)
        return {
            "table": table,
            "id": record.id,
            "created": record.created,
            "version": record.version,
            "public": Fragment(record.public),
            "hidden": Fragment(record.hidden),
        }


def parts_of(sandbox: Sandbox) -> Iterator[bytes]:
    """The lines of a state, many together."""
    lines = []
    size = 0
    for line in Writer().state(sandbox):
        lines.append(line)
        size += len(line)
        if size > PART:
            yield b"\n".join(lines)
            lines = []
            size = 0
    if lines:
        yield b"\n".join(lines)


def _sandbox(sandbox: Sandbox) -> Body:
    """What a sandbox has besides records, events, timers and replies."""
    origin = sandbox.origin
    return {
        "name": sandbox.name,
        "scenario": origin.scenario,
        "seed": origin.seed,
        "home": origin.home,
        "step": sandbox.log.number,
        "clock": sandbox.clock.recorded._asdict(),
        "position": sandbox.ids.position,
        "event_salt": f"{sandbox.ids.event_salt:x}",
        "raised": sandbox.events.raised,
        "timers_set": sandbox.timers.last,
        "sample": origin.sample,
        "personas": origin.personas,
        "seeded_keys": sorted(origin.seeded_keys),
        "settings": sandbox.settings._asdict(),
        "first_settings": origin.first_settings._asdict(),
        "first_clock": origin.first_clock,
    }


def _filled(body: Body) -> Body:
    """The members that are not empty."""
    return {name: value for name, value in body.items() if value not in _EMPTY}


def _ends(ends: Ends, write: Callable[[Any], Body]) -> Body | None:
    """How a list changes: how many of its newest items are gone, and those that are there
    instead.
    """
    if not any(ends):
        return None
    return {"gone": len(ends.before), "back": list(map(write, ends.after))}


def written(changes: Sequence[Change]) -> list[Record]:
    """The versions that were written, in order."""
    return [change.after for change in changes if change.after is not None]


def _shown(event: Event, changes: Sequence[Change]) -> Body:
    """An event, and which versions of the same step it shares its two parts with."""
    resource = hidden = None
    for number, record in enumerate(written(changes)):
        if event.resource is record.public:
            resource = number
        if event.hidden is record.hidden:
            hidden = number
    return _event(event, resource, hidden)


def _event(event: Event, resource: int | None, hidden: int | None = None) -> Body:
    """An event; a part that it shares with a record is given as that record's index."""
    names, others = event.extras
    body = event._asdict() | {"resource": resource, "hidden": hidden}
    if resource is None:
        body["resource"] = Fragment(event.resource)
    if hidden is None and event.hidden:
        body["hidden"] = Fragment(event.hidden)
    return body | {"extras": {"names": names, "others": Fragment(others)}}


def _reply(saved: Saved) -> Body:
    return {
        "key": saved.key,
        "fingerprint": saved.fingerprint.hex(),
        "expires": saved.expires,
        "status": saved.status,
        "body": saved.body.decode(),
        "headers": [
            [name.decode("latin-1"), value.decode("latin-1")] for name, value in saved.headers
        ],
    }


# -- secrets


def blanked(table: str, record: Record) -> Record:
    """A record without its secrets: digests, signing keys, values of headers and users of
    addresses.
    """
    if table == "api_keys":
        return changed(record, {}, {"digest": ""})
    if table == "webhooks":
        shown = orjson.loads(record.public)
        return changed(
            record,
            {
                "headers": [{**header, "value": REDACTED} for header in shown["headers"]],
                "url": _USER.sub(r"\1", shown["url"]),
            },
            {"signing_keys": []},
        )
    if table == "webhook_logs":
        kept = orjson.loads(record.hidden)["request_headers"]
        for name in kept:
            if not name.startswith(_OURS):
                kept[name] = REDACTED
        return changed(
            record,
            {"url": _USER.sub(r"\1", orjson.loads(record.public)["url"])},
            {"request_headers": kept},
        )
    return record


def changed(record: Record, public: Body, hidden: Body) -> Record:
    """A record with members of its two parts changed."""
    return record._replace(public=_with(record.public, public), hidden=_with(record.hidden, hidden))


def _with(part: bytes, changes: Body) -> bytes:
    if not changes:
        return part
    return encoded(orjson.loads(part) | changes)
