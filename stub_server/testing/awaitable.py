"""The same sandbox for tests that await: methods run in a thread, `api` and `control` are asynchronous clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

import httpx2
from anyio import to_thread

from .sandbox import Credentials, Fault, Inbox, Json, Sandbox

__tracebackhide__ = True
P = ParamSpec("P")
R = TypeVar("R")


async def _run(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    return await to_thread.run_sync(partial(work, *args, **kwargs))


class AsyncSandbox:
    """A `Sandbox` whose methods are awaited; works with asyncio and trio. `sync` is the sandbox itself."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sync = sandbox
        self.name, self.url, self.token = sandbox.name, sandbox.url, sandbox.token
        self.headers, self.env, self.sample = sandbox.headers, sandbox.env, sandbox.sample
        self.api = _client(sandbox.api)
        self.control = _client(sandbox.control)

    async def order(self, **changes: Any) -> Json:
        """`Sandbox.order`."""
        return await _run(self.sync.order, **changes)

    async def customer(self, **changes: Any) -> Json:
        """`Sandbox.customer`."""
        return await _run(self.sync.customer, **changes)

    async def plan(self, **changes: Any) -> Json:
        """`Sandbox.plan`."""
        return await _run(self.sync.plan, **changes)

    async def subscription(self, order: Json | str) -> Json:
        """`Sandbox.subscription`."""
        return await _run(self.sync.subscription, order)

    async def pay(self, order: Json | str) -> Json:
        """`Sandbox.pay`."""
        return await _run(self.sync.pay, order)

    async def expire(self, order: Json | str) -> Json:
        """`Sandbox.expire`."""
        return await _run(self.sync.expire, order)

    async def fail(self, order: Json | str, **body: Any) -> Json:
        """`Sandbox.fail`."""
        return await _run(self.sync.fail, order, **body)

    async def refund(self, order: Json | str, **body: Any) -> Json:
        """`Sandbox.refund`."""
        return await _run(self.sync.refund, order, **body)

    async def dispute(self, order: Json | str, **body: Any) -> Json:
        """`Sandbox.dispute`."""
        return await _run(self.sync.dispute, order, **body)

    async def advance(self, **time: float) -> Json:
        """`Sandbox.advance`."""
        return await _run(self.sync.advance, **time)

    async def travel(self, to: date | str) -> Json:
        """`Sandbox.travel`."""
        return await _run(self.sync.travel, to)

    def as_of(self, step_or_time: int | date | str) -> httpx2.AsyncClient:
        """`Sandbox.as_of`."""
        return _client(self.sync.as_of(step_or_time))

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[None]:
        """`Sandbox.snapshot`."""
        kept = self.sync.snapshot()
        await _run(kept.__enter__)
        try:
            yield
        finally:
            await _run(kept.__exit__, None, None, None)

    async def credentials(self, scopes: Sequence[str]) -> Credentials:
        """`Sandbox.credentials`."""
        return await _run(self.sync.credentials, scopes)

    @asynccontextmanager
    async def fault(self, preset: str | None = None, **rule: Any) -> AsyncIterator[Fault]:
        """`Sandbox.fault`, for the length of the block."""
        fault = await _run(self.sync.fault, preset, **rule)
        try:
            yield fault
        finally:
            await _run(fault.delete)

    async def inbox(self, events: Sequence[str] | None = None) -> AsyncInbox:
        """`Sandbox.inbox`."""
        return AsyncInbox(await (_run(self.sync.inbox) if events is None else _run(self.sync.inbox, events)))

    async def deliver_to(self, url: str, events: Sequence[str] | None = None) -> Json:
        """`Sandbox.deliver_to`."""
        return await (_run(self.sync.deliver_to, url) if events is None else _run(self.sync.deliver_to, url, events))

    async def drain(self, timeout: float = 15.0) -> None:
        """`Sandbox.drain`."""
        await _run(self.sync.drain, timeout)

    async def requests(self, **query: Any) -> list[Json]:
        """`Sandbox.requests`."""
        return await _run(self.sync.requests, **query)

    async def verify(self, operationId: str | None = None, **expected: Any) -> list[str]:
        """`Sandbox.verify`."""
        return await _run(self.sync.verify, operationId, **expected)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await _run(self.sync.delete)


class AsyncInbox:
    """An `Inbox` whose methods are awaited."""

    def __init__(self, inbox: Inbox) -> None:
        self.sync = inbox
        self.url, self.webhook, self.signing_key = inbox.url, inbox.webhook, inbox.signing_key

    async def messages(self, event: str | None = None) -> list[Json]:
        """`Inbox.messages`."""
        return await _run(self.sync.messages, event)

    async def wait_for(self, event: str, timeout: float = 5.0) -> Json:
        """`Inbox.wait_for`."""
        return await _run(self.sync.wait_for, event, timeout)


def _client(client: httpx2.Client) -> httpx2.AsyncClient:
    own: Mapping[str, str] = client.headers
    # No connection is kept: nobody could close it, as a test's event loop ends before its fixtures do.
    limits = httpx2.Limits(max_keepalive_connections=0)
    return httpx2.AsyncClient(base_url=client.base_url, headers=dict(own), timeout=30, limits=limits, trust_env=False)
