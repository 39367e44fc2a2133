"""Reads of the past: with `X-Sandbox-As-Of` a GET of the API answers as things stood after a step or at an instant."""

from __future__ import annotations

import re
from collections import OrderedDict
from functools import partial
from typing import Any
from weakref import ref

from connexion.middleware.abstract import ROUTING_CONTEXT
from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import Call
from ..engine.past import check_kept, state_at, step_at
from ..engine.sandbox import Sandbox
from ..kernel.clock import parse_iso
from ..kernel.problem import Malformed, detail
from .router import CALL

AS_OF = b"x-sandbox-as-of"
NAME = "X-Sandbox-As-Of"
KEPT = 4  # states that were reached, of all sandboxes; each may hold tables of its own
_STEP = re.compile(r"[0-9]{1,15}").fullmatch


class TimeTravel:
    """A layer behind the router. It keeps the states that were read last."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._reached: OrderedDict[tuple[int, int], tuple[ref[Sandbox], Sandbox]] = OrderedDict()

    # No coroutine of its own: every request passes here.
    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        if call.head.is_special and AS_OF in call.headers:
            if scope["extensions"][ROUTING_CONTEXT]["api_base_path"]:
                raise _impossible(f"it is for the API, and {call.trace.path[:60]} tells of the sandbox as it is")
            self._prepare(call)
        return self._app(scope, receive, send)

    def _prepare(self, call: Call) -> None:
        """Have a call read the past once its caller has been admitted, by what he may do today. Raises Malformed."""
        if call.trace.method not in ("GET", "HEAD"):
            raise _impossible(f"it is for GET alone, and this is {call.trace.method[:20]}: the past cannot be changed")
        text = call.headers[AS_OF].decode("latin-1").strip()
        number = int(text) if _STEP(text) else None
        instant = None
        if number is None:
            try:
                instant = parse_iso(text)
            except ValueError:
                asked = f"{text[:60]!r} is neither the number of a step nor a date-time such as 2026-11-20T14:32:05Z"
                raise _impossible(asked) from None
        call.go_back = partial(self._go_back, call, number, instant)

    async def _go_back(self, call: Call, number: int | None, instant: int | None) -> None:
        world = call.sandbox
        if number is None:
            assert instant is not None
            number = step_at(world, instant, NAME)
        check_kept(world.log, number, NAME)
        key = id(world), number
        past = self._reached.get(key)
        if past is None or past[0]() is not world:
            with call.server.waiting.of(call):
                reached = await call.server.sandboxes.lane.in_line(state_at(world, number, world.name))
            reached.journal = world.journal
            # A world that is gone takes its past along.
            past = self._reached[key] = ref(world, lambda _: self._reached.pop(key, None)), reached
            while len(self._reached) > KEPT:
                self._reached.popitem(last=False)
        self._reached.move_to_end(key)
        then = past[1]
        then.clock.latch(then.recorded_clock.now if instant is None else instant)
        call.sandbox, call.store = then, then.store_of(call.store.merchant.id)


def _impossible(why: str) -> Malformed:
    message = f"{NAME}: {why}."
    return Malformed(message, code="malformed_request", details=[detail(NAME, "as_of", message, "header")])
