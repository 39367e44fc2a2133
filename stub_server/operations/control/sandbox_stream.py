"""What happens in a sandbox, as it happens: requests, steps, events, deliveries and the clock, as an event stream.

A reader has a position in journal, log and events, and no queue: a slow one costs nothing.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from itertools import islice, takewhile
from typing import Any

import orjson

from ...calls.call import CONTROL, Call
from ...calls.reply import Reply, Streamed
from ...calls.server import Server
from ...calls.views import shown_step
from ...engine.scheduler import do_due
from ...engine.step import Step
from ...journal.entries import row
from ...kernel.clock import iso
from ...kernel.problem import Limited, NotFound, Unavailable
from ...kernel.text import counted
from ...sandboxes.entry import Entry

PAUSE = 0.05  # seconds between two looks
ALIVE = 15.0  # seconds after which a silent stream says that it is alive
OF_ONE = 8  # the part of a server's readers that one sandbox may have: an eighth
_AT_ONCE = 100  # requests, steps and events of one look, of each
_SHOWN = ("id", "webhookId", "event_id", "event_type", "status")


async def follow_sandbox(call: Call) -> Reply:
    """The stream ends with the sandbox, its generation or the server."""
    server, entry = call.server, call.entry
    most = server.settings.max_streams
    own = sum(place.incarnation == entry.incarnation for place in server.followers)
    for count, limit, what in ((own, max(1, most // OF_ONE), "sandbox"), (len(server.followers), most, "server")):
        if count >= limit:
            message = (
                f"This {what} already has {counted(limit, 'reader')}, the maximum (--max-streams). Close one first."
            )
            raise Limited(message, headers={"Retry-After": "5"})
    given = call.headers.get(b"last-event-id")
    place = Place(entry) if given is None else Place.of(entry, given.decode("latin-1"))
    return Streamed(_follow(server, call.sandbox.name, place), b"text/event-stream")


class Place:
    """How far somebody has read: how many requests, steps and events, and of the next step how many parts."""

    def __init__(self, entry: Entry) -> None:
        sandbox = entry.sandbox
        self.incarnation = entry.incarnation
        self.requests, self.events = sandbox.journal.appended, sandbox.events.raised
        self.step, self.part = sandbox.log.number, 0

    @classmethod
    def of(cls, entry: Entry, ident: str) -> "Place":
        """The place that an id names; in a sandbox that began meanwhile, its beginning."""
        place = cls(entry)
        incarnation, requests, step, part, events = ident.rsplit("-", 4)
        if incarnation == entry.incarnation:
            place.requests, place.events = min(int(requests), place.requests), min(int(events), place.events)
            place.step, place.part = min((int(step), int(part)), (place.step, 0))
        else:
            place.requests = place.step = 0
            place.events = entry.origin_events
        return place

    def __str__(self) -> str:
        return f"{self.incarnation}-{self.requests}-{self.step}-{self.part}-{self.events}"

    def read(self, entry: Entry, clocks: frozenset[str]) -> Iterator[bytes]:
        """What is new, as messages; the place moves on with each."""
        yield from self._steps(entry, clocks)
        log = entry.sandbox.events
        kept_from = log.raised - len(log)
        self.events, missed = max(min(self.events, log.raised), kept_from), kept_from - self.events
        yield from self._gap("event", missed)
        for event in log.after(self.events, _AT_ONCE):
            self.events += 1
            yield self._message("event", event.payload())
        journal = entry.sandbox.journal
        kept_from = journal.appended - len(journal)
        self.requests, missed = max(self.requests, kept_from), kept_from - self.requests
        yield from self._gap("request", missed)
        first = self.requests - kept_from
        for trace in islice(journal, first, first + _AT_ONCE):
            self.requests += 1
            if not trace.path.startswith(CONTROL):
                yield self._message("request", row(trace))

    def _steps(self, entry: Entry, clocks: frozenset[str]) -> Iterator[bytes]:
        log = entry.sandbox.log
        kept_from = log.oldest - 1
        if self.step < kept_from:
            missed, self.step, self.part = kept_from - self.step, kept_from, 0
            yield from self._gap("step", missed)
        new = list(takewhile(lambda step: step.number > self.step, reversed(log)))
        for step in new[: -_AT_ONCE - 1 : -1]:
            parts = list(_parts(step, clocks))
            if step.restored is not None:  # events are counted on from an earlier number
                self.events = min(self.events, step.restored.raised_after)
            if self.part >= len(parts):  # an id may name a part that there is not
                self.step, self.part = step.number, 0
                continue
            for kind, data in parts[self.part :]:
                self.part += 1
                if self.part == len(parts):
                    self.step, self.part = step.number, 0
                yield self._message(kind, data)

    def _gap(self, kind: str, missed: int) -> Iterator[bytes]:
        """The number of messages of a kind that are left out, since what they would show is no longer stored."""
        if missed > 0:
            yield self._message("gap", {"of": kind, "missed": missed})

    def _message(self, kind: str, data: Any) -> bytes:
        body = data if isinstance(data, bytes) else orjson.dumps(data)
        return b"event: %b\nid: %b\ndata: %b\n\n" % (kind.encode(), str(self).encode(), body)


async def _follow(server: Server, name: str, place: Place) -> AsyncGenerator[bytes, None]:
    loop, generation = asyncio.get_running_loop(), server.sandboxes.entry(name).sandbox.generation
    clocks = frozenset(o.id for o in server.control.operations.values() if o.tag == "Sandbox clock")
    server.followers.add(place)
    try:
        yield b"retry: 1000\n\n"
        silent = loop.time()
        while not server.closing.is_set():
            try:
                entry = server.sandboxes.entry(name)
            except NotFound:
                return
            if entry.incarnation != place.incarnation or entry.sandbox.generation != generation:
                return
            if not entry.sandbox.is_broken:
                await do_due(entry.sandbox, server.sandboxes.worker)
            if server.sandboxes.persistence.lease == 0:  # another server may have the sandbox
                return
            if server.sandboxes.persistence.committing:
                with suppress(Unavailable):  # what could not be written is undone by then
                    await server.sandboxes.persistence.settled(entry.sandbox)
            messages = list(place.read(entry, clocks))
            for message in messages:
                yield message
            if messages:
                silent = loop.time()
            elif loop.time() - silent > ALIVE:
                silent = loop.time()
                yield b": alive\n\n"
            else:
                yield b""  # sending it shows whether the reader is still there
            await asyncio.sleep(0 if len(messages) >= _AT_ONCE else PAUSE)
    finally:
        server.followers.discard(place)


def _parts(step: Step, clocks: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """A step, the deliveries that it opened or tried, and the clock where it was moved."""
    yield "step", shown_step(step)
    for table, record, _ in step.puts:
        if table == "webhook_logs":
            public = orjson.loads(record.public)
            yield "delivery", {name: public[name] for name in _SHOWN}
    if step.cause.operation in clocks:
        yield "clock", {"now": iso(step.clock.now), "frozen": step.clock.frozen}
