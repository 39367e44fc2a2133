"""What happens in a sandbox, as it happens: requests, steps, events, deliveries and the clock, as
an event stream.

A reader has a position in journal, log and events, and no queue: a slow one costs nothing.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import orjson

from ...core.clock import iso
from ...core.problem import Limited, NotFound, Unavailable
from ...core.text import counted
from ...engine.kept import Log
from ...engine.scheduler import do_due
from ...engine.step import Step
from ...server.journal.entries import row
from ...server.reply import Reply, Streamed
from ...server.request import CONTROL
from ...server.sandboxes.entry import Entry
from ...server.server import Server
from ...server.views import shown_step
from ...server.work import Work

PAUSE = 0.05  # seconds between two looks
ALIVE = 15.0  # seconds after which a silent stream says that it is alive
OF_ONE = 8  # the part of a server's readers that one sandbox may have: an eighth
_AT_ONCE = 100  # requests, messages about steps, and events of one look, of each
_SHOWN = ("id", "webhookId", "event_id", "event_type", "status")


async def follow_sandbox(work: Work) -> Reply:
    """The stream ends with the sandbox, its generation or the server."""
    place = Place(work.entry, work.request.headers.get(b"last-event-id", b"").decode("latin-1"))
    _check_room(work.server, place)
    return Streamed(place.followed(work.server), b"text/event-stream")


def _check_room(server: Server, place: "Place") -> None:
    """Raises Limited where there are as many readers as may be."""
    most, followers = server.settings.max_streams, server.underway.followers
    own = sum(each.incarnation == place.incarnation for each in followers)
    for count, limit, what in (
        (own, max(1, most // OF_ONE), "sandbox"),
        (len(followers), most, "server"),
    ):
        if count >= limit:
            message = (
                f"This {what} already has {counted(limit, 'reader')}, the maximum (--max-streams)."
                " Close one first."
            )
            raise Limited(message, headers={"Retry-After": "5"})


class Place:
    """How far somebody has read: how many requests, steps and events."""

    def __init__(self, entry: Entry, last: str) -> None:
        """`last` is the id of the last message that was read, empty for a new reader.

        In a sandbox that began after that message, all is new but the events with which it began.
        """
        sandbox = entry.sandbox
        self.name, self.generation = sandbox.name, sandbox.origin.generation
        self.incarnation = entry.incarnation
        self.read_of = {
            "request": sandbox.journal.appended,
            "step": sandbox.log.number,
            "event": sandbox.events.raised,
        }
        incarnation, *counts = last.rsplit("-", 3)
        if counts and incarnation != entry.incarnation:
            counts = ["0", "0", str(entry.origin_events)]
        for kind, count in zip(self.read_of, counts, strict=False):
            self.read_of[kind] = min(int(count), self.read_of[kind])

    def __str__(self) -> str:
        return "-".join([self.incarnation, *map(str, self.read_of.values())])

    async def followed(self, server: Server) -> AsyncGenerator[bytes, None]:
        """What happens in the sandbox, until it ends, its generation or the server.

        It begins once the client reads: by then there may be another generation.
        """
        loop = asyncio.get_running_loop()
        try:
            _check_room(server, self)  # others may have begun before this one was read
        except Limited:
            return
        server.underway.followers.add(self)
        try:
            yield b"retry: 1000\n\n"
            silent = loop.time()
            while not server.closing.is_set():
                entry = self._entry(server)
                if entry is None:
                    return
                await _catch_up(server, entry)
                if server.sandboxes.persistence.lease == 0:  # another server may have the sandbox
                    return
                messages = list(self.read(entry))
                for message in messages:
                    yield message
                if loop.time() - silent > ALIVE:
                    messages.append(b": alive\n\n")
                    yield messages[-1]
                if messages:
                    silent = loop.time()
                yield b""  # sending it shows whether the reader is still there
                await asyncio.sleep(0 if len(messages) >= _AT_ONCE else PAUSE)
        finally:
            server.underway.followers.discard(self)

    def _entry(self, server: Server) -> Entry | None:
        """The sandbox, unless it is gone, has begun anew, or was rotated."""
        try:
            entry = server.sandboxes.entry(self.name)
        except NotFound:
            return None
        now = entry.incarnation, entry.sandbox.origin.generation
        return entry if now == (self.incarnation, self.generation) else None

    def read(self, entry: Entry) -> Iterator[bytes]:
        """What is new, as messages; the place moves on with each."""
        yield from self._steps(entry.sandbox.log)
        events = entry.sandbox.events
        yield from self._gap("event", events.raised - len(events))
        self.read_of["event"] = min(self.read_of["event"], events.raised)
        for event in events.after(self.read_of["event"], _AT_ONCE):
            self.read_of["event"] += 1
            yield self._message("event", event.payload())
        journal = entry.sandbox.journal
        oldest = journal.appended - len(journal)
        yield from self._gap("request", oldest)
        first = self.read_of["request"] - oldest
        for trace in islice(journal, first, first + _AT_ONCE):
            self.read_of["request"] += 1
            if not trace.path.startswith(CONTROL):
                yield self._message("request", row(trace))

    def _steps(self, log: Log) -> Iterator[bytes]:
        """The new steps: of those with many deliveries fewer at once.

        The place moves on with the last message of each: who resumes before that has it again.
        """
        yield from self._gap("step", log.oldest - 1)
        begin, count = self.read_of["step"] - log.oldest + 1, 0
        for step in islice(log, begin, begin + _AT_ONCE):
            if step.restores:  # events are counted on from an earlier number
                self.read_of["event"] = min(self.read_of["event"], step.after.events)
            *first, last = _parts(step)
            for kind, data in first:
                yield self._message(kind, data)
            self.read_of["step"] = step.number
            yield self._message(*last)
            count += 1 + len(first)
            if count >= _AT_ONCE:
                return

    def _gap(self, kind: str, oldest: int) -> Iterator[bytes]:
        """Skip what is no longer stored, and tell its number."""
        missed = oldest - self.read_of[kind]
        if missed > 0:
            self.read_of[kind] = oldest
            yield self._message("gap", {"of": kind, "missed": missed})

    def _message(self, kind: str, data: Any) -> bytes:
        body = data if isinstance(data, bytes) else orjson.dumps(data)
        return b"event: %b\nid: %b\ndata: %b\n\n" % (kind.encode(), str(self).encode(), body)


async def _catch_up(server: Server, entry: Entry) -> None:
    """Do what is due in a sandbox, and wait until all its steps are stored."""
    if not entry.sandbox.status.is_broken:
        await do_due(entry.sandbox, server.sandboxes.worker)
    if server.sandboxes.persistence.committing:
        with suppress(Unavailable):  # what could not be written is undone by then
            await server.sandboxes.persistence.settled(entry.sandbox)


def _parts(step: Step) -> Iterator[tuple[str, Any]]:
    """A step, the deliveries that it opened or tried, and the clock where it was moved."""
    yield "step", shown_step(step)
    for table, _, after in step.changes:
        if table == "webhook_logs" and after is not None:
            public = orjson.loads(after.public)
            yield "delivery", {name: public[name] for name in _SHOWN}
    if step.cause.operation in ("setClock", "advanceClock"):
        yield "clock", {"now": iso(step.after.clock.now), "frozen": step.after.clock.frozen}
