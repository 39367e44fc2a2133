"""What fault rules and headers do to one request."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from starlette.types import Scope

from ...contract.document import Operation
from ...core.problem import BadRequest, Refusal
from ...core.record import Body
from ...engine.fault_rules import BEFORE, LONGEST_DELAY, Effect
from ..reply import DROPPED, Answer, Answering, Cut, Headers, has_left
from ..tokens import REALM
from ..work import Work

SIMULATED = b"x-sandbox-simulated"
LOOK = 0.25  # seconds between two checks whether the client of a delayed request is still there
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
GoOn = Callable[[], Answering]
"""Passes the request on to the next layer."""


class Injection:
    """The faults of one request: those of its headers and of rules, and those that wait for its
    body.

    RequestContext has the answer damaged, when the change was recorded.
    """

    effect: Effect | None = None  # the first effect that does more than wait

    def __init__(self, work: Work, operation: Operation, late: Iterable[Effect]) -> None:
        """`late` are effects of headers that wait until the caller is known."""
        self._work, self._operation, self._late = work, operation, late
        self._labels: list[str] = []

    def at_once(self, wishes: Iterable[Effect], go_on: GoOn) -> Answering:
        """Pass the request on after the effects of headers, and of rules that read no body."""
        return self._inject(chain(wishes, self._of_rules()), go_on)

    def with_body(self, body: Any, go_on: GoOn) -> Answering:
        """Pass the request on, whose body is valid, after all other effects."""
        return self._inject(chain(self._late, self._of_rules(body, reads_body=True)), go_on)

    def _of_rules(self, body: Any = None, *, reads_body: bool = False) -> Iterator[Effect]:
        work, request = self._work, self._work.request
        return work.sandbox.faults.by_request(
            {
                "operationId": self._operation.id,
                "method": request.method,
                "path": work.trace.path,
            },
            request.headers,
            work.now,
            body,
            reads_body=reads_body,
        )

    async def _inject(self, effects: Iterable[Effect], go_on: GoOn) -> Answer:
        """Pass the request on after the delays of the effects up to the first that does more; the
        rest are ignored.

        Raises the refusal that replaces the answer, and BadRequest if the client leaves: then
        nothing is done.
        """
        before = after = 0
        for effect in effects:
            before += effect.delay
            after += effect.delay_after
            self._labels.append(effect.label)
            if not effect.only_waits:
                self.effect = effect
                break
        work = self._work
        if self._labels:
            work.trace.simulated = ", ".join(self._labels)
        if not (before or after) or not work.server.waits:
            return await self._pass_on(go_on)
        with work.waiting():
            if not await _is_there_after(before, work.scope):
                raise BadRequest("The client left during the delay. The request was not processed.")
            try:
                answer = await self._pass_on(go_on)
            except Exception:
                await _is_there_after(after, work.scope)
                raise
            await _is_there_after(after, work.scope)
            return answer

    async def _pass_on(self, go_on: GoOn) -> Answer:
        effect = self.effect
        if effect is not None and effect.is_answer:
            raise self._refusal(effect)
        if effect is not None and effect.then.get("drop_connection") == BEFORE:
            return DROPPED
        return await go_on()

    def _refusal(self, effect: Effect) -> Refusal:
        """The answer that an effect asks for, as the contract's example has it."""
        then, document = effect.then, self._work.server.document
        rules = document.schema("ErrorCode").get("x-rules", {})
        status = then.get("status") or rules.get(then["code"], {}).get("status", 503)
        usual = (code for known, code in refusals_of(self._operation) if known == status)
        code = str(then.get("code") or next(usual, "simulated_fault"))
        said: Body = {}
        for value in document.examples(self._operation.raw["responses"].get(str(status))):
            if isinstance(value, dict) and value.get("code") == code:
                said = value
                break
        if "message" in then:
            said = {"message": then["message"]}
        return Refusal(
            said.get("message") or f"The sandbox simulates this answer ({effect.label}).",
            status=status,
            code=code,
            details=said.get("details", ()),
            headers=_usual_headers(status, code, self._operation),
        )

    def damaged(self, answer: Answer) -> Answer:
        """What is sent in place of an answer: nothing where the connection is dropped after it."""
        effect, headers, body = self.effect, answer.headers, answer.body
        if self._labels:
            headers.append((SIMULATED, ", ".join(self._labels).encode()))
        if effect is None:
            return answer
        then = effect.then
        if "drop_connection" in then:
            return DROPPED
        if then.get("headers"):
            headers = _with_headers(headers, then["headers"])
        if then.get("corrupt_json") and body:
            body = body[:-1] + b","  # of the same length, but not JSON
        if "truncate_body" in then and body:
            kept = min(int(len(body) * then["truncate_body"]), len(body) - 1)
            return Cut(answer.status, headers, body[:kept])
        return Answer(answer.status, headers, body)


def refusals_of(operation: Operation) -> list[tuple[int, str | None]]:
    """The statuses and codes that an operation may refuse with; the contract lists the most usual
    codes first.
    """
    refusals = list[tuple[int, str | None]]()
    for status, response in operation.responses.items():
        refusals += [(status, code) for code in response.codes]
    return [*refusals, *_OF_ALL]


def _usual_headers(status: int, code: str, operation: Operation) -> dict[str, str]:
    """The headers of a real refusal of this status and code."""
    if code == "insufficient_scope":
        scopes = " ".join(sorted(operation.scopes))
        return {"WWW-Authenticate": f'{REALM}, error="insufficient_scope", scope="{scopes}"'}
    if status == 401 and code in ("missing_credentials", "simulated_fault"):
        return {"WWW-Authenticate": REALM}
    if status == 401:
        return {"WWW-Authenticate": f'{REALM}, error="invalid_token"'}
    return {"Retry-After": "1"} if code in ("rate_limited", "too_many_connections") else {}


_INERT = [
    (b"content-security-policy", b"sandbox; default-src 'none'"),
    (b"x-content-type-options", b"nosniff"),
]


def _with_headers(headers: Headers, named: Mapping[str, str]) -> Headers:
    """The headers of an answer with those of a rule, which take the place of others of their name.

    Whatever type the rule names, a browser runs nothing of it beside the pages of this server.
    """
    given = {
        name.lower().encode(): value.encode("latin-1", "replace") for name, value in named.items()
    }
    kept = [header for header in headers if header[0].lower() not in given]
    return [*kept, *given.items(), *_INERT]


async def _is_there_after(delay: int, scope: Scope) -> bool:
    """Wait some milliseconds, and return whether the client is still there."""
    clock = asyncio.get_running_loop().time
    until = clock() + min(delay, LONGEST_DELAY) / 1_000
    while (left := until - clock()) > 0:
        await asyncio.sleep(min(left, LOOK))
        if has_left(scope):
            return False
    return True
