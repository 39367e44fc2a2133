"""Runs requests through the API in a copy of a sandbox: no journal, no rate limit, and nothing
leaves the server.
"""

import asyncio
from collections.abc import Callable
from functools import cached_property

from starlette.types import Message

from ...core.problem import Refusal
from ...core.slices import at_once
from ...engine.fault_rules import Faults
from ...engine.kept import Budget, Log
from ...engine.sandbox import Sandbox
from ...engine.scheduler import due_jobs
from ..layers.context import request_of
from ..layers.inside import Question, scope_of
from ..layers.routing import Application, Routing
from ..layers.way import Way
from ..reply import Answer

_PEER = ("127.0.0.1", 0)


class Rehearsal:
    """One per server."""

    def __init__(self, app: Callable[[], Application]) -> None:
        """`app` returns the application; it is complete when the first request has come."""
        self._app = app

    @cached_property
    def routing(self) -> Routing:
        return next(
            layer for layer in self._app().middleware_stack or () if isinstance(layer, Routing)
        )

    def copy_of(self, sandbox: Sandbox) -> Sandbox:
        """A copy of a sandbox for rehearsals: it keeps no steps, and has no fault rules."""
        twin = sandbox.fork(sandbox.name)
        twin.log = Log(0, Budget())
        twin.log.number = sandbox.log.number
        twin.faults = Faults(sandbox.origin.seed)
        return twin

    async def ask(self, copy: Sandbox, asked: Question) -> Refusal | None:
        """Why a copy of a sandbox refuses a request, after the jobs that are due in it; None if it
        accepts it.

        Others are served between two answers.
        """

        async def receive() -> Message:
            return {"type": "http.request", "body": asked.body, "more_body": False}

        async def send(message: Message) -> None:
            """Nothing is sent: the answer is returned."""

        await asyncio.sleep(0)
        scope = scope_of("", asked, _PEER)
        way = Way(self._app().server, request_of(scope), scope, receive, send)
        way.begin(copy, asked.path)
        try:
            at_once(due_jobs(copy))
            answer: Answer = await self.routing(way)
        except Refusal as refusal:
            return refusal
        except Exception as defect:  # which the request itself has already logged
            return Refusal(str(defect))
        await answer.abandon()
        if 200 <= answer.status < 300:
            return None
        return Refusal(f"{answer.status}")
