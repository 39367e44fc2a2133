"""Events: by page, newest first; after a position, as they happen; and raised by a work."""

import asyncio
from collections.abc import Iterable
from typing import Any

import orjson

from ...core.problem import Conflict
from ...core.record import Body, Record
from ...core.slices import filtered
from ...domain.webhooks import listens
from ...engine import samples
from ...engine.lists import Event
from ...engine.scheduler import do_due
from ...server import lists
from ...server.reply import Reply, has_left
from ...server.sandboxes.entry import Entry
from ...server.work import Work

PAUSE = 0.05  # seconds between two looks


async def list_events(work: Work, query: Body) -> Reply:
    if "after" in query or "wait" in query:
        return await _since(work, query)
    found = (await _asked_for(work, work.sandbox.events, query))[::-1]
    page, limit = query["page"], query["limit"]
    return _page(
        found[(page - 1) * limit : page * limit],
        {"pagination": lists.pagination(page, limit, len(found))},
    )


async def _asked_for(work: Work, events: Iterable[Event], query: Body) -> list[Event]:
    """The events that a query asks for; others are served meanwhile."""
    types = frozenset(query.get("type", ["*"]))

    def is_asked_for(event: Event) -> bool:
        if query.get("resource_id", event.subject) != event.subject:
            return False
        return query.get("id", event.id) == event.id and listens(types, event.type)

    return await work.in_slices(filtered(list(events), is_asked_for))


def _page(events: list[Event], rest: Body) -> Reply:
    """The records in them were checked when they were written: a hundred events may have 30 MB."""
    rows = [b","] * max(0, 2 * len(events) - 1)
    rows[::2] = [event.payload() for event in events]
    parts = (b'{"events":[', *rows, b"],", orjson.dumps(rest)[1:])
    return Reply(200, parts, "events" if events else None)


def trigger_event(work: Work, body: Body) -> Body:
    """Raise an event without a cause: no record changes, and all webhooks that listen to
    it receive it.
    """
    entry = work.server.document.events[body["type"]]
    event = samples.sample(work.draft, body["type"], entry, _subject(work, body, entry))
    if "overrides" in body:
        event = event._replace(
            resource=orjson.dumps(_patched(orjson.loads(event.resource), body["overrides"]))
        )
        schema = work.server.schemas.compile(entry["schema"], request=False)
        error = schema.first_error(orjson.loads(event.payload()))
        if error is not None:  # receivers rely on it
            field = ".".join(map(str, error.instance_path))[:200] or "overrides"
            message = (
                f"Overrides are merged into data.{entry['payload_key']}; with them the payload"
                f" violates the contract at {field}: {error.message[:300]}"
            )
            raise Conflict.at("overrides", message, "event_conflict")
    work.draft.raise_event(event)
    return {"event": orjson.Fragment(event.payload())}


def _subject(work: Work, body: Body, entry: Body) -> Record | None:
    """The record that the event is about: the one that is asked for, of any merchant,
    else the newest.
    """
    ident = body.get("resource_id")
    if ident is None:
        return next(iter(samples.newest(work.draft, body["type"], entry)), None)
    for store in work.sandbox.stores.values():
        table = samples.table_of(store, entry)
        record = None if table is None else table.find(ident.lower())
        if record is not None:
            work.store = store
            return record
    raise Conflict.at(
        "resource_id",
        f"No record of this sandbox that {body['type']} is about has this resource_id.",
        "reference_not_found",
    )


def _patched(value: Any, changes: Any) -> Any:
    """A JSON value with a merge patch (RFC 7396) applied: null takes a member away."""
    if not isinstance(changes, dict):
        return changes
    whole = dict(value) if isinstance(value, dict) else {}
    for name, change in changes.items():
        if change is None:
            whole.pop(name, None)
        else:
            whole[name] = _patched(whole.get(name), change)
    return whole


async def _since(work: Work, query: Body) -> Reply:
    """The events after a position, oldest first; while there are none it waits as
    long as it may.
    """
    server, loop = work.server, asyncio.get_running_loop()
    until = loop.time() + query.get("wait", 0)
    entry = work.entry
    after = query.get("after", f"{entry.incarnation}-{entry.sandbox.events.raised}")
    with work.waiting():
        while True:
            events, rest = await _next(work, entry, after, query)
            after = rest["next"]
            if events or rest["began_anew"] or rest["missed"] or loop.time() >= until:
                break
            if server.closing.is_set() or has_left(work.scope):  # its place is for another
                break
            await asyncio.sleep(PAUSE)
            await work.next_turn()  # many are woken together
            entry = work.entry  # a reset has put another sandbox in its place
            if not entry.sandbox.status.is_broken:
                await do_due(entry.sandbox, server.sandboxes.worker)
    return _page(events, rest)


async def _next(work: Work, entry: Entry, after: str, query: Body) -> tuple[list[Event], Body]:
    """The events after a position that the query admits, and the other members of the answer.

    A position is an incarnation and how many events had been raised. In a sandbox that has been
    reset or rewound since, all events are new but those with which it began.
    """
    log, incarnation = entry.sandbox.events, entry.incarnation  # a rewind changes both
    before, _, count = after.rpartition("-")
    position = min(int(count), log.raised) if before == incarnation else entry.origin_events
    missed = max(0, log.raised - len(log) - position)
    new = list(log.since(position))
    found = await _asked_for(work, new, query)
    page = found[: query["limit"]]
    read = len(new) if len(page) == len(found) else new.index(page[-1]) + 1
    return page, {
        "pagination": lists.pagination(1, query["limit"], len(found)),
        "next": f"{incarnation}-{position + missed + read}",
        "began_anew": before != incarnation,
        "missed": missed,
    }
