"""Runs requests through the API in a copy of a sandbox: no journal, no rate limit, and nothing leaves the server."""

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
    """A request. `path` has no sandbox prefix; `headers` are by name in lower case."""

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

    def copy_of(self, sandbox: Sandbox) -> Sandbox:
        """A copy of a sandbox for rehearsals: it keeps no steps, and has no fault rules."""
        twin = sandbox.fork(sandbox.name)
        twin.log, number = Log(0, Budget()), sandbox.log.number
        twin.log.number = number
        twin.faults = Faults(sandbox.seed)
        return twin

    async def ask(self, server: Server, copy: Sandbox, asked: Question, prefix: str = "") -> Answer:
        """The answer of the API in a copy of a sandbox, after the jobs that are due in it. A defect answers 500.

        `prefix` is that of the sandbox in the URLs of its answers.
        """

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": asked.body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            """Nothing is sent: the answer is left in the call."""

        headers = {name.encode(): value.encode("latin-1", "replace") for name, value in asked.headers.items()}
        query = asked.query.encode("latin-1", "replace")
        self._silent = self._silent or silent(server)
        call = Call(asked.method, asked.path, query, Head(headers), copy, self._silent)
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
            tick_through(copy)
            await self._routing()(scope, receive, send)
        except Refusal as refusal:
            return Answer(refusal.status, b"", refusal.code, str(refusal), refusal.details)
        except Exception:  # a defect, which the request itself has already logged
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
    """Sends nothing."""

    async def attempt(
        self, delivery: Delivery, timeout: float, limits: set[asyncio.Timeout] | None = None
    ) -> AttemptOutcome:
        """The outcome of an attempt that nobody answered."""
        return AttemptOutcome(None, None, {}, 0, "connection_failed", {}, "")


def silent(server: Server) -> Server:
    """The same server, from which nothing is sent."""
    mute = _Mute(server.version, local=False)
    return dataclasses.replace(server, courier=Courier(mute, mute), sender_abroad=mute)


def _refused(status: int, body: bytes) -> Answer:
    """A refusal that was answered and not raised, such as the stored answer of an Idempotency-Key."""
    try:
        refusal = orjson.loads(body)
        return Answer(status, body, refusal["code"], refusal["message"], tuple(refusal["details"]))
    except (ValueError, KeyError, TypeError):
        return Answer(status, body)
