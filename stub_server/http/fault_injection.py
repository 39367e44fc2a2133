"""Faults on demand, by a request's own headers and by the fault rules of the sandbox.

FaultInjection acts before the credential is read, BodyFaults by rules that read the body, once it has been validated.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, MOST_WARNINGS, Answer, Call
from ..calls.credentials import REALM
from ..contract.document import Document, Operation
from ..faults.fault_rules import AFTER, BEFORE, LONGEST_DELAY, Effect
from ..kernel.problem import BadRequest, Refusal, detail
from ..kernel.text import nearest, warning_of
from .answers import Headers, has_left

SIMULATED = b"x-sandbox-simulated"
PREFER, SIMULATE, DELAY = b"prefer", b"x-sandbox-simulate", b"x-sandbox-delay"
LOOK = 0.25  # seconds between two checks whether the client of a delayed request is still there
_OF_ALL = (
    (408, "request_timeout"), (429, "rate_limited"), (500, "internal_error"), (503, "simulated_fault"),
    (503, "sandbox_unavailable"), (503, "store_unavailable"), (503, "too_many_connections"), (502, "simulated_fault"),
    (504, "simulated_fault"),
)  # fmt: skip
"""Statuses and codes of refusals that may be asked of any operation; of two, the first is the usual one."""
_WISHES = frozenset((PREFER, SIMULATE, DELAY))
_PREFERENCES = ("code", "example")


class FaultInjection:
    """Acts on requests to the API, before the credential is read. The control surface has no faults."""

    def __init__(self, app: ASGIApp, document: Document) -> None:
        """`document` has the statuses and codes that the operations of the API answer."""
        self.app, self._document = app, document
        known = [pair for operation in document.operations.values() for pair in _refusals(operation)]
        self._statuses = {code: status for status, code in reversed(known)}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        has_rules = bool(call.sandbox.faults.rules) and not call.is_internal
        if (has_rules or not _WISHES.isdisjoint(call.headers)) and not call.endpoint.base:
            return self._inject(call.endpoint.operation, scope, receive, send)
        return self.app(scope, receive, send)

    async def _inject(self, operation: Operation, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call = scope[CALL]
        texts = {"operationId": operation.id, "method": call.method, "path": call.trace.path}
        effects_of = partial(call.sandbox.faults.by_request, texts, call.headers, call.now)
        wishes = list(self._asked(scope["headers"], call, operation))
        # On a server that others can reach, only authenticated callers may cause a delay.
        late = [] if call.server.settings.loopback else [wish for wish in wishes if wish.only_waits]
        call.faults = Injection(
            partial(self._refusal, operation), lambda body: chain(late, effects_of(body, reads_body=True))
        )
        effects = chain([wish for wish in wishes if wish not in late], effects_of())
        await call.faults(self.app, effects, scope, receive, send)

    def _refusal(self, operation: Operation, effect: Effect) -> Refusal:
        then = effect.then
        status = then["status"] if "status" in then else self._statuses.get(then["code"], 503)
        usual = (code for known, code in _refusals(operation) if known == status)
        code = then.get("code") or next(usual, "simulated_fault")
        real = {} if "message" in then else self._example(operation, status, code)
        message = then.get("message") or real.get("message") or f"The sandbox simulates this answer ({effect.label})."
        details, headers = real.get("details", ()), dict(_usual(status, code, operation.scopes))
        return Refusal(message, status=status, code=code, details=details, headers=headers)

    def _example(self, operation: Operation, status: int, code: str) -> dict[str, Any]:
        """The contract's example of a refusal; empty if it has none."""
        values = self._document.examples(operation.raw["responses"].get(str(status)))
        return next((value for value in values if isinstance(value, dict) and value.get("code") == code), {})

    def _asked(self, sent: Headers, call: Call, operation: Operation) -> Iterator[Effect]:
        """What a request's headers ask for; `sent` are all headers, as preferences may be in several.

        Raises BadRequest for what the operation cannot answer.
        """
        headers = call.headers
        if DELAY in headers:
            yield _delay(headers[DELAY])
        if SIMULATE in headers:
            code = headers[SIMULATE].decode("latin-1").strip()
            yield from _wished(operation, "X-Sandbox-Simulate", "simulate", None, code)
        if PREFER in headers:
            preferred = _preferences(b",".join(value for name, value in sent if name == PREFER).decode("latin-1"))
            unknown = [name for name in reversed(preferred) if name not in _PREFERENCES]
            guessed = unknown[:MOST_WARNINGS]
            call.warn(*(warning_of("unknown_preference", name, nearest(name, _PREFERENCES)) for name in guessed))
            yield from _wished(operation, "Prefer", "prefer", preferred.get("code"), preferred.get("example"))


class BodyFaults:
    """Acts on requests that are valid."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        injection: Injection | None = call.faults
        if injection is None or injection.effect is not None:
            return self.app(scope, receive, send)
        return injection(self.app, injection.of_body(call.arguments.get("body")), scope, receive, send)


class Injection:
    """The faults of one request."""

    effect: Effect | None = None  # the first effect that does more than wait

    def __init__(self, refusal: Callable[[Effect], Refusal], of_body: Callable[[Any], Iterable[Effect]]) -> None:
        """`refusal` makes the answer that an effect asks for; `of_body` has the effects that depend on the body."""
        self.of_body, self._refusal, self._labels = of_body, refusal, list[str]()

    async def __call__(
        self, app: ASGIApp, effects: Iterable[Effect], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Pass the request on after the delays of the effects up to the first that does more; the rest are ignored.

        Raises the refusal that replaces the answer, and BadRequest if the client leaves: then nothing is done.
        """
        call: Call = scope[CALL]
        before = after = 0
        for effect in effects:
            before += effect.delay
            after += effect.delay_after
            self._labels.append(effect.label)
            if not effect.only_waits:
                self.effect = effect
                break
        if self._labels:
            call.trace.simulated = ", ".join(self._labels)
        if not (before or after) or not call.server.waits:
            await self._pass_on(app, scope, receive, send)
            return
        with call.server.waiting.take(call.sandbox.name):
            try:
                if not await _is_there_after(before, scope):
                    message = "The client left during the delay. The request was not processed."
                    raise BadRequest(message)
                await self._pass_on(app, scope, receive, send)
            except Exception:
                await _is_there_after(after, scope)
                raise
            await _is_there_after(after, scope)

    async def _pass_on(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        effect = self.effect
        if effect is not None and effect.is_answer:
            raise self._refusal(effect)
        if effect is not None and effect.then.get("drop_connection") == BEFORE:
            scope[CALL].answer = 0, [], (b"",), b""
        else:
            await app(scope, receive, send)

    def damage(self, answer: Answer) -> tuple[Answer, int | None] | None:
        """The answer as it is sent, and how many bytes of its body, if not all; None for no answer."""
        effect, (status, headers, parts, body) = self.effect, answer
        if self._labels:
            headers.append((SIMULATED, ", ".join(self._labels).encode()))
        if effect is None:
            return (status, headers, parts, body), None
        then = effect.then
        if "drop_connection" in then:
            return None
        sent = then.get("headers", {}).items()
        given = [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in sent]
        names = {name for name, _ in given}
        headers = [*(header for header in headers if header[0].lower() not in names), *given]
        if given:  # whatever type the rule names, a browser runs nothing of it beside the pages of this server
            headers += _INERT
        if then.get("corrupt_json") and body:
            body = body[:-1] + b","  # of the same length, but not JSON
        kept = None
        if "truncate_body" in then and body:
            kept = min(int(len(body) * then["truncate_body"]), len(body) - 1)
        return (status, headers, (body,), body), kept


_INERT = [(b"content-security-policy", b"sandbox; default-src 'none'"), (b"x-content-type-options", b"nosniff")]


async def _is_there_after(delay: int, scope: Scope) -> bool:
    """Wait some milliseconds, and return whether the client is still there."""
    clock = asyncio.get_running_loop().time
    until = clock() + min(delay, LONGEST_DELAY) / 1_000
    while (left := until - clock()) > 0:
        await asyncio.sleep(min(left, LOOK))
        if has_left(scope):
            return False
    return True


def _delay(header: bytes) -> Effect:
    """`800` waits before the request is executed, `800; after` before its answer is sent."""
    text, mark, when = [part.strip() for part in header.decode("latin-1").partition(";")]
    is_number = text.isascii() and text.isdigit() and len(text) <= 6 and int(text) <= LONGEST_DELAY
    if not is_number or (mark and when.lower() != AFTER):
        message = f"X-Sandbox-Delay is a whole number of milliseconds, at most {LONGEST_DELAY}, or 800; after."
        details = [detail("X-Sandbox-Delay", "simulation", message, "header")]
        raise BadRequest(message, details=details)
    return Effect("delay", delay_after=int(text)) if mark else Effect("delay", delay=int(text))


def _usual(status: int, code: str, scopes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The headers of a real refusal of this status and code."""
    if code == "insufficient_scope":
        yield "WWW-Authenticate", f'{REALM}, error="insufficient_scope", scope="{" ".join(sorted(scopes))}"'
    elif status == 401:
        is_bad = code not in ("missing_credentials", "simulated_fault")
        yield "WWW-Authenticate", f'{REALM}, error="invalid_token"' if is_bad else REALM
    elif code in ("rate_limited", "too_many_connections"):
        yield "Retry-After", "1"


def _preferences(header: str) -> dict[str, str]:
    """The members of a Prefer header by name; the first of two counts (RFC 7240)."""
    members = [member.partition("=") for member in header.replace(";", ",").split(",")]
    return {name.strip().lower(): value.strip().strip('"') for name, _, value in reversed(members) if name.strip()}


def _refusals(operation: Operation) -> list[tuple[int, str]]:
    """The statuses and codes that an operation may refuse with; the contract lists the most usual codes first."""
    return [(status, code) for status, response in operation.responses.items() for code in response.codes] + [*_OF_ALL]


def _wished(operation: Operation, header: str, label: str, status: str | None, code: str | None) -> Iterator[Effect]:
    """The refusal of this status, this code, or both; nothing for a success. Raises BadRequest if there is none."""
    if status is None and code is None:
        return
    refusals = _refusals(operation)
    known = [*refusals, *((each, None) for each in operation.responses)]
    found = next(((s, c) for s, c in known if status in (None, str(s)) and code in (None, c)), None)
    if found is None:
        asked = " ".join([part for part in (status, code) if part is not None])
        codes = sorted({c for s, c in refusals if status in (None, str(s))}) if code is not None else ()
        listed = ", ".join(codes or sorted({str(s) for s, _ in known}))
        message = f"{header}: {operation.id} does not answer {asked[:60]}. It answers {listed}."
        raise BadRequest(message, details=[detail(header, "simulation", message, "header")])
    if found[0] >= 400:
        yield Effect(label, {"status": found[0], "code": found[1]})
