"""Failure on demand: what a request's own headers and the sandbox's fault rules have happen to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..calls.call import Call
from ..calls.tokens import REALM
from ..contract.document import Document, Operation
from ..faults.match import Request
from ..faults.rule import BEFORE, Effect
from ..faults.rules import LONGEST_DELAY
from ..kernel.problem import Limited, Malformed, Refusal, detail
from .bodies import read_late
from .errors import Headers, render
from .hangup import hang_up, has_left

SIMULATED = b"x-sandbox-simulated"
PREFER, SIMULATE, DELAY = b"prefer", b"x-sandbox-simulate", b"x-sandbox-delay"
MOST_WAITING = 128  # requests at once
LOOK = 0.25  # seconds between two looks whether the client of a delayed request is still there
ANYWHERE = {
    "rate_limited": 429, "internal_error": 500, "sandbox_unavailable": 503, "too_many_connections": 503,
    "simulated_fault": 503, "request_timeout": 408,
}  # fmt: skip
"""Codes that any operation may answer, and their statuses."""
ALWAYS = {429: "rate_limited", 500: "internal_error", 502: "simulated_fault", 503: "simulated_fault",
          504: "simulated_fault"}  # fmt: skip
"""Statuses that Prefer may ask of any operation, and their codes."""
_DIGITS = 5


class Simulator:
    """One per API: it knows which statuses and codes each operation has."""

    def __init__(self, document: Document) -> None:
        self._operations = document.operations
        self._waiting = 0
        self._statuses = dict(ANYWHERE)
        for operation in document.operations.values():
            for status, response in operation.responses.items():
                for code in response.codes:
                    self._statuses.setdefault(code, status)

    async def serve(
        self, app: ASGIApp, call: Call, operation_id: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve a request that something may happen to."""
        call.trace.operation = operation_id
        simulation = Simulation(self, call, operation_id, scope)
        request = Request(operation_id, call.trace.method, call.trace.path, call.headers)
        rules, now = call.sandbox.faults, call.sandbox.clock.now

        wishes = list(self._asked(scope["headers"], call, self._operations[operation_id]))
        # Strangers must not make a server that others can reach wait: there it waits for callers that it has admitted.
        late = [] if call.server.loopback else [wish for wish in wishes if wish.only_waits]

        async def go_on(answer: Send) -> None:
            await simulation.have(wish for wish in wishes if wish not in late)
            if simulation.is_undecided:
                await simulation.have(rules.by_request(request, now))
            if simulation.is_to_be_dropped(BEFORE):
                return
            if simulation.is_undecided and (late or rules.read_bodies):
                before = call.after_validation

                async def after_validation(body: Any) -> None:
                    await simulation.have(chain(late, rules.by_body(request, body, now)))
                    if before is not None:
                        await before(body)

                call.after_validation = after_validation
            await app(scope, receive, answer)

        await simulation.run(go_on, scope, receive, send)

    async def wait(self, seconds: float, scope: Scope) -> None:
        """Let a request wait. Raises Limited when too many do: each of them holds a connection.

        Raises Malformed once its client has left: what nobody waits for is not done.
        """
        if self._waiting >= MOST_WAITING:
            raise Limited(f"{MOST_WAITING} requests wait already, the most at once.", headers={"Retry-After": "1"})
        self._waiting += 1
        try:
            until = asyncio.get_running_loop().time() + seconds
            while (left := until - asyncio.get_running_loop().time()) > 0:
                await asyncio.sleep(min(left, LOOK))
                if has_left(scope):
                    raise Malformed(
                        "The client left while the request was delayed: it is not done.", code="malformed_request"
                    )
        finally:
            self._waiting -= 1

    def refusal(self, effect: Effect, operation_id: str) -> Refusal:
        """The answer of an operation that an effect asks for."""
        scopes = self._operations[operation_id].scopes
        status, code = effect.status, effect.code or "simulated_fault"
        message = effect.message or f"The sandbox simulates this answer ({effect.label})."
        status = self._statuses.get(code, 503) if status is None else status
        refusal = Refusal(message, code=code, headers=dict(_usual(status, code, scopes)))
        refusal.status = status
        return refusal

    def _asked(self, sent: Headers, call: Call, operation: Operation) -> Iterable[Effect]:
        """What the request's own headers ask for; `sent` are all of them, for preferences may stand in several."""
        headers = call.headers
        if DELAY in headers:
            yield Effect("delay", delay=_milliseconds(headers[DELAY]))
        if SIMULATE in headers:
            yield self._by_code(operation, headers[SIMULATE].decode("latin-1").strip())
        asked = None
        if PREFER in headers:
            asked = _preferred(b",".join(value for name, value in sent if name == PREFER).decode("latin-1"))
        if asked is not None:
            status = int(asked) if asked.isascii() and asked.isdigit() and len(asked) <= _DIGITS else 0
            if status not in operation.responses and status not in ALWAYS:
                possible = sorted({*operation.responses, *ALWAYS})
                raise _impossible("Prefer", f"code={asked}", operation, possible)
            if status >= 400:
                response = operation.responses.get(status)
                code = response.codes[0] if response is not None and response.codes else ALWAYS.get(status)
                yield Effect("prefer", status=status, code=code)

    def _by_code(self, operation: Operation, code: str) -> Effect:
        for status, response in operation.responses.items():
            if code in response.codes:
                return Effect("simulate", status=status, code=code)
        if code in ANYWHERE:
            return Effect("simulate", status=ANYWHERE[code], code=code)
        own = {code for response in operation.responses.values() for code in response.codes}
        raise _impossible("X-Sandbox-Simulate", code, operation, sorted(own | ANYWHERE.keys()))


class Simulation:
    """What happens to one request."""

    def __init__(self, simulator: Simulator, call: Call, operation_id: str, scope: Scope) -> None:
        self._simulator, self._call, self._operation_id, self._scope = simulator, call, operation_id, scope
        self._effect: Effect | None = None
        self._labels: list[str] = []
        self._status, self._headers, self._body = 0, Headers(), b""

    @property
    def is_undecided(self) -> bool:
        """Whether nothing but waiting has happened yet."""
        return self._effect is None

    def is_to_be_dropped(self, when: str) -> bool:
        """Whether the connection ends `before` or `after` the change."""
        return self._effect is not None and self._effect.drop == when

    async def have(self, effects: Iterable[Effect]) -> None:
        """Wait as long as they say, up to the first that does more; the rest are not looked at.

        Raises the refusal that takes the answer's place.
        """
        delay = 0
        for effect in effects:
            delay += effect.delay
            self._labels.append(effect.label)
            if not effect.only_waits:
                self._effect = effect
                break
        if self._labels:
            self._call.trace.simulated = ", ".join(self._labels)
        if delay and self._call.server.waits:
            await self._simulator.wait(min(delay, LONGEST_DELAY) / 1_000, self._scope)
        if self._effect is not None and self._effect.is_answer:
            raise self._simulator.refusal(self._effect, self._operation_id)

    async def run(self, serve: Callable[[Send], Awaitable[None]], scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request, and do to its answer what is to be done."""
        try:
            await serve(self._collect)
            if self._call.answer is not None:
                self._status, self._headers, _, self._body = self._call.answer
                self._call.answer = None
        except ConnectionResetError:
            raise
        except Exception as error:
            self._status, self._headers, self._body = render(error, self._call.trace)
            await read_late(self._call, receive)
        effect, headers, body = self._effect, self._headers, self._body
        if self._labels:
            headers.append((SIMULATED, ", ".join(self._labels).encode()))
        if effect is not None:
            given = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in effect.headers]
            names = {name for name, _ in given}
            headers = [*(header for header in headers if header[0].lower() not in names), *given]
            if effect.drop is not None:
                await hang_up(scope, receive, unsent=True)
                return
            if effect.corrupt and body:
                body = body[:-1] + b","  # of the same length, and no JSON any more
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        if effect is not None and effect.keep is not None and body:
            part = body[: min(int(len(body) * effect.keep), len(body) - 1)]
            await send({"type": "http.response.body", "body": part, "more_body": True})
            await hang_up(scope, receive, unsent=False)
            return
        await send({"type": "http.response.body", "body": b"" if self._call.trace.method == "HEAD" else body})

    async def _collect(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message["headers"])
        else:
            self._body += message.get("body", b"")


def _milliseconds(header: bytes) -> int:
    text = header.decode("latin-1").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and int(text) <= LONGEST_DELAY):
        message = f"X-Sandbox-Delay is a whole number of milliseconds, at most {LONGEST_DELAY}."
        details = [detail("X-Sandbox-Delay", "simulation", message, "header")]
        raise Malformed(message, code="malformed_request", details=details)
    return int(text)


def _usual(status: int, code: str, scopes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The headers that a real refusal of this status and code has."""
    if code == "insufficient_scope":
        yield "WWW-Authenticate", f'{REALM}, error="insufficient_scope", scope="{" ".join(sorted(scopes))}"'
    elif status == 401:
        is_bad = code not in ("missing_credentials", "simulated_fault")
        yield "WWW-Authenticate", f'{REALM}, error="invalid_token"' if is_bad else REALM
    elif code in ("rate_limited", "too_many_connections"):
        yield "Retry-After", "1"


def _preferred(header: str) -> str | None:
    """The status that a Prefer header asks for, as it stands there."""
    for preference in header.replace(";", ",").split(","):
        name, mark, value = preference.partition("=")
        if mark and name.strip().lower() == "code":
            return value.strip().strip('"')
    return None


def _impossible(header: str, asked: str, operation: Operation, possible: Iterable[object]) -> Malformed:
    """400 of a header that asks for what the operation cannot answer, with all that it can."""
    listed = ", ".join(str(one) for one in possible)
    message = f"{header}: {operation.id} does not answer {asked[:60]}. It answers {listed}."
    return Malformed(message, code="malformed_request", details=[detail(header, "simulation", message, "header")])
