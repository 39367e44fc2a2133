"""What happened: newest first by page, and as it happens."""

import asyncio
from itertools import islice

from ...calls import reply
from ...calls.call import Call
from ...calls.reply import Reply
from ...engine.scheduler import tick
from ...kernel.page import Page
from ...kernel.record import Body
from ...worlds.entry import Entry

PAUSE = 0.05  # seconds between two looks


def list_events(call: Call, query: Body) -> Reply:
    """200 with a page of the event log."""
    type_, subject = query.get("type"), query.get("resource_id")
    log = call.sandbox.events
    page, limit = query["page"], query["limit"]
    everything = type_ is None and subject is None
    total = len(log) if everything else sum(1 for _ in log.newest(type_, subject))
    first = (page - 1) * limit
    chosen = [] if first >= total else [e.payload() for e in islice(log.newest(type_, subject), first, first + limit)]
    return Reply(200, (b'{"events":[', b",".join(chosen), b'],"pagination":', Page(page, limit, total).json(), b"}"))


async def follow_events(call: Call, query: Body) -> Reply:
    """200 with the events since a position, oldest first; while there are none it waits as long as it may."""
    server, loop = call.server, asyncio.get_running_loop()
    until = loop.time() + query["wait_seconds"]
    entry = server.sandboxes.entry(call.sandbox.name)
    since = query.get("since", _position(entry, entry.world.events.raised))
    while True:
        position, began_anew = _read(entry, since)
        events = entry.world.events.after(position, query["limit"])
        if events or began_anew or loop.time() >= until or server.closing.is_set():
            break
        await asyncio.sleep(PAUSE)
        entry = server.sandboxes.entry(call.sandbox.name)  # a reset has put another world in its place
        if not entry.world.is_broken:
            tick(entry.world)
    log = entry.world.events
    missed = max(0, log.raised - len(log) - position)
    rest = {"next": _position(entry, position + missed + len(events)), "began_anew": began_anew, "missed": missed}
    parts = (b'{"events":[', b",".join(event.payload() for event in events), b"],", reply.members(rest), b"}")
    return Reply(200, parts)


def _position(entry: Entry, count: int) -> str:
    return f"{entry.incarnation}-{count}"


def _read(entry: Entry, since: str) -> tuple[int, bool]:
    """How many events had been raised then, and whether that was in a world that is no more.

    Of a world that began meanwhile everything is new that it did not begin with.
    """
    incarnation, _, count = since.rpartition("-")
    if incarnation != entry.incarnation:
        return entry.origin_events, True
    return min(int(count), entry.world.events.raised), False
