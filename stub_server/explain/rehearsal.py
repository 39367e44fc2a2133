"""Runs requests through the API in a copy of a world: no journal, no rate limit, and nothing leaves the server."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import orjson

from ..calls.call import CALL, Call, Head
from ..calls.server import Server
from ..delivery.courier import Courier
from ..domain.deliveries import AttemptOutcome
from ..engine.bounded import Budget, Log
from ..engine.sandbox import Sandbox
from ..engine.scheduler import tick_through
from ..events.sender import Delivery, Sender
from ..faults.fault_rules import Faults
from ..kernel.problem import Detail, Refusal

_PEER = ("127.0.0.1", 0)


class Question(NamedTuple):
    """A request. `path` is the one in its world, `headers` are by name in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    """What the API said: the answer's body, or of a refusal its code, message and details."""

    status: int
    body: bytes = b""
    code: str | None = None
    message: str = ""
    details: tuple[Detail, ...] = ()

    @property
    def is_success(self) -> bool:
        """Whether the request was accepted."""
        return 200 <= self.status < 300


class Rehearsal:
    """One per server."""

    def __init__(self, routing: Callable[[], Callable[..., Awaitable[None]]]) -> None:
        """`routing` returns the layer of the server at which requests enter."""
        self._routing = routing
        self._silent: Server | None = None

    def stage(self, world: Sandbox) -> Sandbox:
        """A copy of a world for rehearsals: it keeps no steps, and no fault rule acts in it."""
        twin = world.fork(world.name)
        twin.log, number = Log(0, Budget()), world.log.number
        twin.log.number = number
        twin.faults = Faults(world.seed)
        return twin

    async def ask(self, server: Server, stage: Sandbox, asked: Question, prefix: str = "") -> Answer:
        """How the API answers in a copy of a world, whose due jobs are done first. A defect is no answer but 500.

        `prefix` is the one of the sandbox that its own URLs begin with.
        """

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": asked.body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            """Nothing is sent: the answer is left in the call."""

        headers = {name.encode(): value.encode("latin-1", "replace") for name, value in asked.headers.items()}
        query = asked.query.encode("latin-1", "replace")
        self._silent = self._silent or silent(server)
        call = Call(asked.method, asked.path, query, Head(headers), stage, self._silent)
        call.client, call.prefix = _PEER, prefix
        call.begin()
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": asked.method,
            "scheme": "http",
            "path": asked.path,
            "query_string": query,
            "root_path": "",
            "headers": list(headers.items()),
            "client": _PEER,
            "extensions": {},
            CALL: call,
        }
        try:
            tick_through(stage)
            await self._routing()(scope, receive, send)
        except Refusal as refusal:
            return Answer(refusal.status, b"", refusal.code, str(refusal), refusal.details)
        except Exception:  # a defect: the request itself has told of it, and a rehearsal tells nobody anything
            return Answer(500)
        finally:
            if call.faults is not None:
                call.faults.end()
        if call.stream is not None:
            await call.stream.chunks.aclose()
            return Answer(200)
        status, _, _, body = call.answer
        return Answer(status, body) if status < 400 else _refused(status, body)


class _Mute(Sender):
    """Sends nothing: copies that the server makes for itself never speak."""

    async def attempt(
        self, delivery: Delivery, timeout: float, limits: set[asyncio.Timeout] | None = None
    ) -> AttemptOutcome:
        """Say that nobody answered."""
        return AttemptOutcome(None, None, {}, 0, "connection_failed", {}, "")


def silent(server: Server) -> Server:
    """The same server, from which nothing is sent."""
    mute = _Mute(server.version, local=False)
    return dataclasses.replace(server, courier=Courier(mute, mute), sender_abroad=mute)


def _refused(status: int, body: bytes) -> Answer:
    """A refusal that was answered and not raised, such as one that an Idempotency-Key keeps."""
    try:
        said = orjson.loads(body)
        return Answer(status, body, said["code"], said["message"], tuple(said["details"]))
    except (ValueError, KeyError, TypeError):
        return Answer(status, body)
