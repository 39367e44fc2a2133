"""DueJobs: what fell due in the sandbox happens before the request, in slices of time."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, CONTROL, Call
from ..calls.server import Server
from ..engine.scheduler import pass_on, tick
from ..kernel.problem import broken

ABOUT_THE_SERVER = frozenset(f"{CONTROL}/{name}" for name in ("health", "metrics", "ready"))
SERVED_WHEN_BROKEN = ABOUT_THE_SERVER | {f"{CONTROL}/reset"}


class DueJobs:
    """Has time pass in the sandbox, and refuses one that cannot be served."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self.app, self._waiting, self._lane = app, server.waiting, server.sandboxes.lane
        self._persistence = server.sandboxes.persistence

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        sandbox, trace = call.sandbox, call.trace
        if self._persistence.unknown and call.path not in SERVED_WHEN_BROKEN:
            self._persistence.check(sandbox)
        if not sandbox.is_broken:
            is_due = not sandbox.clock.latch(sandbox.timers.jobs, stands=sandbox.is_advancing)
            if is_due and (until := tick(sandbox)) is not None:
                return self._later(until, scope, receive, send)
            trace.at, trace.before = sandbox.clock.now, sandbox.log.number
        if sandbox.is_broken:
            _refuse_broken(call)
        return self.app(scope, receive, send)

    async def _later(self, until: int, scope: Scope, receive: Receive, send: Send) -> None:
        """Do what takes longer first: this request waits, and those to other sandboxes do not."""
        call: Call = scope[CALL]
        sandbox, trace = call.sandbox, call.trace
        with self._waiting.with_sandbox(call):
            await pass_on(sandbox, self._lane, until)
        trace.at, trace.before, trace.began = sandbox.clock.now, sandbox.log.number, perf_counter_ns()
        if sandbox.is_broken:
            _refuse_broken(call)
        await self.app(scope, receive, send)


def _refuse_broken(call: Call) -> None:
    """Raises Unavailable, but for what ends that state."""
    if call.path not in SERVED_WHEN_BROKEN:
        raise broken(call.sandbox.name)
