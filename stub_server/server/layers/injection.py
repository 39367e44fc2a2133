"""What fault rules and headers do to one request."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from starlette.types import Scope

from ...core.problem import BadRequest, Refusal
from ...engine.fault_rules import BEFORE, LONGEST_DELAY, Effect
from ...engine.kept import Trace
from ..reply import DROPPED, Answer, Cut, Headers, has_left
from ..server import Server

SIMULATED = b"x-sandbox-simulated"
LOOK = 0.25  # seconds between two checks whether the client of a delayed request is still there
GoOn = Callable[[], Awaitable[Answer]]
"""Passes the request on to the next layer."""


class Injection:
    """The faults of one request.

    Dispatch applies those of rules that read the body, once it has been validated. RequestContext
    has the answer damaged, when the change was recorded.
    """

    effect: Effect | None = None  # the first effect that does more than wait

    def __init__(
        self,
        server: Server,
        scope: Scope,
        trace: Trace,
        refusal: Callable[[Effect], Refusal],
        of_body: Callable[[Any], Iterable[Effect]],
    ) -> None:
        """`refusal` makes the answer that an effect asks for; `of_body` has the effects that depend
        on the body.
        """
        self._server, self._scope, self._trace = server, scope, trace
        self._refusal, self.of_body = refusal, of_body
        self._labels: list[str] = []

    async def __call__(self, go_on: GoOn, effects: Iterable[Effect]) -> Answer:
        """Pass the request on after the delays of the effects up to the first that does more; the
        rest are ignored.

        Raises the refusal that replaces the answer, and BadRequest if the client leaves: then
        nothing is done.
        """
        before, after = self._take(effects)
        if self._labels:
            self._trace.simulated = ", ".join(self._labels)
        if not (before or after) or not self._server.waits:
            return await self._pass_on(go_on)
        with self._server.waiting.take(self._trace.sandbox):
            try:
                if not await _is_there_after(before, self._scope):
                    message = "The client left during the delay. The request was not processed."
                    raise BadRequest(message)
                answer = await self._pass_on(go_on)
            except Exception:
                await _is_there_after(after, self._scope)
                raise
            await _is_there_after(after, self._scope)
            return answer

    def _take(self, effects: Iterable[Effect]) -> tuple[int, int]:
        """Take effects up to the first that does more than wait; returns the delays (ms) before
        and after the request is executed.
        """
        before = after = 0
        for effect in effects:
            before += effect.delay
            after += effect.delay_after
            self._labels.append(effect.label)
            if not effect.only_waits:
                self.effect = effect
                break
        return before, after

    async def _pass_on(self, go_on: GoOn) -> Answer:
        effect = self.effect
        if effect is not None and effect.is_answer:
            raise self._refusal(effect)
        if effect is not None and effect.then.get("drop_connection") == BEFORE:
            return DROPPED
        return await go_on()

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
