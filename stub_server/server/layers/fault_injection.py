"""Faults on demand, by a request's own headers and by the fault rules of the sandbox."""

from collections.abc import Awaitable, Iterable, Iterator
from functools import partial
from itertools import chain

from ...contract.document import Operation
from ...core.problem import BadRequest, Refusal
from ...core.record import Body
from ...core.text import nearest, warning_of
from ...engine.fault_rules import AFTER, LONGEST_DELAY, Effect
from ...engine.kept import Trace
from ..reply import Answer
from ..request import MOST_WARNINGS, Request
from ..server import Server
from ..tokens import REALM
from .injection import Injection
from .way import Layer, Way

PREFER, SIMULATE, DELAY = b"prefer", b"x-sandbox-simulate", b"x-sandbox-delay"
_OF_ALL = (
    (408, "request_timeout"),
    (429, "rate_limited"),
    (500, "internal_error"),
    (503, "simulated_fault"),
    (503, "sandbox_unavailable"),
    (503, "store_unavailable"),
    (503, "too_many_connections"),
    (502, "simulated_fault"),
    (504, "simulated_fault"),
)
"""Statuses and codes of refusals that may be asked of any operation; of two, the first is
the usual one.
"""
_WISHES = frozenset((PREFER, SIMULATE, DELAY))
_PREFERENCES = ("code", "example")


class FaultInjection:
    """Acts on requests to the API, before the credential is read.

    The control surface has no faults.
    """

    def __init__(self, app: Layer, server: Server) -> None:
        self.app, self._server, self._document = app.__call__, server, server.document
        self._rules = self._document.schema("ErrorCode").get("x-rules", {})

    def __call__(self, way: Way) -> Awaitable[Answer]:
        request = way.request
        has_rules = bool(way.target.sandbox.faults.rules) and not request.is_internal
        if (has_rules or not _WISHES.isdisjoint(request.headers)) and not way.endpoint.base:
            return self._inject(way.endpoint.operation, way)
        return self.app(way)

    async def _inject(self, operation: Operation, way: Way) -> Answer:
        request, trace, sandbox = way.request, way.trace, way.target.sandbox
        texts = {"operationId": operation.id, "method": request.method, "path": trace.path}
        effects_of = partial(sandbox.faults.by_request, texts, request.headers, sandbox.clock.now)
        wishes = list(_asked(request, trace, operation))
        # On a server that others can reach, only authenticated callers may cause a delay.
        late = []
        if self._server.settings.for_others:
            late = [wish for wish in wishes if wish.only_waits]
        injection = way.faults = Injection(
            self._server,
            way.scope,
            trace,
            partial(self._refusal, operation),
            lambda body: chain(late, effects_of(body, reads_body=True)),
        )
        effects = chain([wish for wish in wishes if wish not in late], effects_of())
        return await injection(partial(self.app, way), effects)

    def _refusal(self, operation: Operation, effect: Effect) -> Refusal:
        then = effect.then
        status = then.get("status") or self._rules.get(then["code"], {}).get("status", 503)
        usual = (code for known, code in _refusals(operation) if known == status)
        code = then.get("code") or next(usual, "simulated_fault")
        real = {} if "message" in then else self._example(operation, status, code)
        message = (
            then.get("message")
            or real.get("message")
            or f"The sandbox simulates this answer ({effect.label})."
        )
        details, headers = real.get("details", ()), dict(_usual(status, code, operation.scopes))
        return Refusal(message, status=status, code=code, details=details, headers=headers)

    def _example(self, operation: Operation, status: int, code: str) -> Body:
        """The contract's example of a refusal; empty if it has none."""
        for value in self._document.examples(operation.raw["responses"].get(str(status))):
            if isinstance(value, dict) and value.get("code") == code:
                return value
        return {}


def _asked(request: Request, trace: Trace, operation: Operation) -> Iterator[Effect]:
    """What a request's headers ask for.

    Raises BadRequest for what the operation cannot answer.
    """
    headers = request.headers
    if DELAY in headers:
        yield _delay(headers[DELAY])
    if SIMULATE in headers:
        code = headers[SIMULATE].decode("latin-1").strip()
        yield from _wished(operation, "X-Sandbox-Simulate", "simulate", None, code)
    if PREFER in headers:
        sent = [value for name, value in request.sent if name == PREFER]
        preferred = _preferences(b",".join(sent).decode("latin-1"))
        unknown = [name for name in reversed(preferred) if name not in _PREFERENCES]
        for name in unknown[:MOST_WARNINGS]:
            trace.warn([warning_of("unknown_preference", name, nearest(name, _PREFERENCES))])
        wished = preferred.get("code"), preferred.get("example")
        yield from _wished(operation, "Prefer", "prefer", *wished)


def _delay(header: bytes) -> Effect:
    """`800` waits before the request is executed, `800; after` before its answer is sent."""
    text, mark, when = [part.strip() for part in header.decode("latin-1").partition(";")]
    is_number = text.isascii() and text.isdigit() and len(text) <= 6 and int(text) <= LONGEST_DELAY
    if not is_number or (mark and when.lower() != AFTER):
        message = (
            f"X-Sandbox-Delay is a whole number of milliseconds, at most {LONGEST_DELAY}, or 800;"
            " after."
        )
        raise BadRequest.at("X-Sandbox-Delay", message, where="header", violation="simulation")
    return Effect("delay", delay_after=int(text)) if mark else Effect("delay", delay=int(text))


def _usual(status: int, code: str, scopes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The headers of a real refusal of this status and code."""
    if code == "insufficient_scope":
        yield (
            "WWW-Authenticate",
            f'{REALM}, error="insufficient_scope", scope="{" ".join(sorted(scopes))}"',
        )
    elif status == 401:
        is_bad = code not in ("missing_credentials", "simulated_fault")
        yield "WWW-Authenticate", f'{REALM}, error="invalid_token"' if is_bad else REALM
    elif code in ("rate_limited", "too_many_connections"):
        yield "Retry-After", "1"


def _preferences(header: str) -> dict[str, str]:
    """The members of a Prefer header by name; the first of two counts (RFC 7240)."""
    members = [member.partition("=") for member in header.replace(";", ",").split(",")]
    return {
        name.strip().lower(): value.strip().strip('"')
        for name, _, value in reversed(members)
        if name.strip()
    }


def _refusals(operation: Operation) -> list[tuple[int, str]]:
    """The statuses and codes that an operation may refuse with; the contract lists the most usual
    codes first.
    """
    refusals = []
    for status, response in operation.responses.items():
        refusals += [(status, code) for code in response.codes]
    return [*refusals, *_OF_ALL]


def _wished(
    operation: Operation, header: str, label: str, status: str | None, code: str | None
) -> Iterator[Effect]:
    """The refusal of this status, this code, or both; nothing for a success.

    Raises BadRequest if there is none.
    """
    if status is None and code is None:
        return
    known = [*_refusals(operation), *((each, None) for each in operation.responses)]
    for answered, its_code in known:
        if status in (None, str(answered)) and code in (None, its_code):
            if answered >= 400:
                yield Effect(label, {"status": answered, "code": its_code})
            return
    asked = " ".join(filter(None, (status, code)))
    answers = {str(answered) for answered, _ in known}
    if code is not None:
        answers = {its_code for _, its_code in _refusals(operation)}
    listed = ", ".join(sorted(answers))
    message = f"{header}: {operation.id} does not answer {asked[:60]}. It answers {listed}."
    raise BadRequest.at(header, message, where="header", violation="simulation")
