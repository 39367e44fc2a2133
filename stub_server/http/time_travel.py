"""TimeTravel: with `X-Sandbox-As-Of` a GET of the API answers as the sandbox was after a step or at an instant."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any
from weakref import ref

from connexion.middleware.abstract import ROUTING_CONTEXT
from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, Call
from ..engine.history import check_kept, state_at, step_at
from ..engine.sandbox import Sandbox
from ..kernel.clock import parse_iso
from ..kernel.problem import BadRequest, detail

AS_OF = b"x-sandbox-as-of"
NAME = "X-Sandbox-As-Of"
KEPT = 4  # states that were reached, of all sandboxes; each may hold tables of its own
_STEP = re.compile(r"[0-9]{1,15}").fullmatch


class TimeTravel:
    """Has an accepted read see the past, by what its caller may do today. It keeps the states that were read last."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._reached: OrderedDict[tuple[int, int], tuple[ref[Sandbox], Sandbox]] = OrderedDict()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        if call.head.is_special and AS_OF in call.headers:
            return self._go_back(scope, receive, send)
        return self.app(scope, receive, send)

    async def _go_back(self, scope: Scope, receive: Receive, send: Send) -> None:
        call: Call = scope[CALL]
        if scope["extensions"][ROUTING_CONTEXT]["api_base_path"]:
            raise _impossible(f"it is for the API, and {call.trace.path[:60]} tells of the sandbox as it is")
        if call.method not in ("GET", "HEAD"):
            raise _impossible(f"it is for GET alone, and this is {call.method[:20]}: the past cannot be changed")
        sandbox = call.sandbox
        asked, instant = _asked(call.headers[AS_OF].decode("latin-1").strip())
        number = step_at(sandbox, instant, NAME) if asked is None else asked
        check_kept(sandbox.log, number, NAME)
        then = await self._state(call, sandbox, number)
        then.clock.now = then.recorded_clock.now if asked is not None else instant
        call.sandbox, call.store = then, then.store_of(call.store.merchant.id)
        await self.app(scope, receive, send)

    async def _state(self, call: Call, sandbox: Sandbox, number: int) -> Sandbox:
        """A copy of the sandbox as it was after a step."""
        key = id(sandbox), number
        past = self._reached.get(key)
        if past is None or past[0]() is not sandbox:
            with call.server.waiting.of(call):
                reached = await call.server.sandboxes.lane.in_line(state_at(sandbox, number, sandbox.name))
            reached.journal = sandbox.journal
            # A sandbox that is gone takes its past along.
            past = self._reached[key] = ref(sandbox, lambda _: self._reached.pop(key, None)), reached
            while len(self._reached) > KEPT:
                self._reached.popitem(last=False)
        self._reached.move_to_end(key)
        return past[1]


def _asked(text: str) -> tuple[int | None, int]:
    """The number of a step, or None and an instant (ms). Raises Malformed for anything else."""
    if _STEP(text):
        return int(text), 0
    try:
        return None, parse_iso(text)
    except ValueError:
        asked = f"{text[:60]!r} is neither the number of a step nor a date-time such as 2026-11-20T14:32:05Z"
        raise _impossible(asked) from None


def _impossible(why: str) -> BadRequest:
    message = f"{NAME}: {why}."
    return BadRequest(message, code="malformed_request", details=[detail(NAME, "as_of", message, "header")])
