"""What happens in a sandbox, as it happens: requests, steps, events, deliveries and the clock, as an event stream.

A reader has a position in journal, log and events, and no queue: a slow one costs nothing.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from itertools import islice, takewhile

import orjson

from ...calls.call import CONTROL, Call
from ...calls.reply import Reply, Streamed
from ...calls.server import Server
from ...calls.views import shown_step
from ...engine.sandbox import Sandbox
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
_CLOCK = ("setClock", "advanceClock")
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
    return Streamed(_follow(server, call.sandbox.name, Place(entry)), b"text/event-stream")


class Place:
    """How far somebody has read: how many requests, steps and events. What is no longer stored then is skipped."""

    def __init__(self, entry: Entry) -> None:
        sandbox = entry.sandbox
        self.incarnation = entry.incarnation
        self.requests, self.step, self.events = sandbox.journal.appended, sandbox.log.number, sandbox.events.raised

    def read(self, sandbox: Sandbox) -> Iterator[bytes]:
        """What is new, as messages; the place moves on."""
        new = list(takewhile(lambda step: step.number > self.step, reversed(sandbox.log)))
        for step in new[: -_AT_ONCE - 1 : -1]:
            self.step = step.number
            yield from _messages(step)
        events = sandbox.events
        self.events = max(self.events, events.raised - len(events))
        for event in events.after(self.events, _AT_ONCE):
            self.events += 1
            yield _message("event", event.payload())
        journal = sandbox.journal
        oldest = journal.appended - len(journal)
        first = max(self.requests - oldest, 0)
        traces = list(islice(journal, first, first + _AT_ONCE))
        self.requests = oldest + first + len(traces)
        for trace in traces:
            if not trace.path.startswith(CONTROL):
                yield _message("request", orjson.dumps(row(trace)))


async def _follow(server: Server, name: str, place: Place) -> AsyncGenerator[bytes, None]:
    loop, generation = asyncio.get_running_loop(), server.sandboxes.entry(name).sandbox.generation
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
            messages = list(place.read(entry.sandbox))
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


def _messages(step: Step) -> Iterator[bytes]:
    """A step, the deliveries that it opened or tried, and the clock where it was moved."""
    yield _message("step", orjson.dumps(shown_step(step)))
    for table, record, _ in step.puts:
        if table == "webhook_logs":
            public = orjson.loads(record.public)
            yield _message("delivery", orjson.dumps({name: public[name] for name in _SHOWN}))
    if step.cause.operation in _CLOCK:
        yield _message("clock", orjson.dumps({"now": iso(step.clock.now), "frozen": step.clock.frozen}))


def _message(kind: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)
