"""The same sandbox for tests that await: methods run in a thread, `api` and `control` are
asynchronous clients.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date
from functools import partial, wraps
from typing import Any, ParamSpec, Self, TypeVar

import httpx2
from anyio import to_thread

from .parts import Fault, Inbox
from .sandbox import EVENTS, Sandbox

__tracebackhide__ = True
P = ParamSpec("P")
R = TypeVar("R")


def _awaited(work: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    @wraps(work)
    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return await to_thread.run_sync(partial(work, *args, **kwargs))

    return run


class AsyncSandbox:
    """A `Sandbox` whose methods are awaited; works with asyncio and trio.

    `sync` is the sandbox itself.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self.sync = sandbox
        self.name, self.url, self.token = sandbox.name, sandbox.url, sandbox.token
        self.headers, self.env, self.sample = sandbox.headers, sandbox.env, sandbox.sample
        self.api = _client(sandbox.api)
        self.control = _client(sandbox.control)
        self.order = _awaited(sandbox.order)
        self.customer = _awaited(sandbox.customer)
        self.plan = _awaited(sandbox.plan)
        self.subscription = _awaited(sandbox.subscription)
        self.pay = _awaited(sandbox.pay)
        self.expire = _awaited(sandbox.expire)
        self.fail = _awaited(sandbox.fail)
        self.refund = _awaited(sandbox.refund)
        self.dispute = _awaited(sandbox.dispute)
        self.advance = _awaited(sandbox.advance)
        self.travel = _awaited(sandbox.travel)
        self.credentials = _awaited(sandbox.credentials)
        self.drain = _awaited(sandbox.drain)
        self.requests = _awaited(sandbox.requests)
        self.verify = _awaited(sandbox.verify)
        self.deliver_to = _awaited(sandbox.deliver_to)

    def as_of(self, step_or_time: int | date | str) -> httpx2.AsyncClient:
        """`Sandbox.as_of`."""
        return _client(self.sync.as_of(step_or_time))

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[None]:
        """`Sandbox.snapshot`."""
        kept = self.sync.snapshot()
        await _awaited(kept.__enter__)()
        try:
            yield
        finally:
            await _awaited(kept.__exit__)(None, None, None)

    @asynccontextmanager
    async def fault(self, preset: str | None = None, **rule: Any) -> AsyncIterator[Fault]:
        """`Sandbox.fault`, for the length of the block."""
        fault = await _awaited(self.sync.fault)(preset, **rule)
        try:
            yield fault
        finally:
            await _awaited(fault.delete)()

    async def inbox(self, events: Sequence[str] = EVENTS) -> AsyncInbox:
        """`Sandbox.inbox`."""
        return AsyncInbox(await _awaited(self.sync.inbox)(events))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await _awaited(self.sync.__exit__)(kind, error, trace)


class AsyncInbox:
    """An `Inbox` whose methods are awaited."""

    def __init__(self, inbox: Inbox) -> None:
        self.sync = inbox
        self.url, self.webhook, self.signing_key = inbox.url, inbox.webhook, inbox.signing_key
        self.messages = _awaited(inbox.messages)
        self.wait_for = _awaited(inbox.wait_for)


def _client(client: httpx2.Client) -> httpx2.AsyncClient:
    own: Mapping[str, str] = client.headers
    # No connection is kept: nobody could close it, as a test's event loop ends before its fixtures
    # do.
    limits = httpx2.Limits(max_keepalive_connections=0)
    return httpx2.AsyncClient(
        base_url=client.base_url, headers=dict(own), timeout=30, limits=limits, trust_env=False
    )
