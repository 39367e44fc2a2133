"""The same sandbox for tests that await: methods run in a thread, `api` and `control` are
asynchronous clients.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import date
from functools import partial
from typing import Any, Self

import httpx2
from anyio import to_thread

from .parts import Fault
from .sandbox import EVENTS, Sandbox

__tracebackhide__ = True


async def _awaited(work: Callable[..., Any], *args: Any, **named: Any) -> Any:
    return await to_thread.run_sync(partial(work, *args, **named))


class _Awaitable:
    """What has the members of another object, `sync`, whose methods are awaited."""

    def __init__(self, sync: Any) -> None:
        self.sync = sync

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.sync, name)
        return partial(_awaited, found) if callable(found) else found


class AsyncSandbox(_Awaitable):
    """A `Sandbox` whose methods are awaited; works with asyncio and trio.

    `sync` is the sandbox itself.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__(sandbox)
        self.api = _client(sandbox.api)
        self.control = _client(sandbox.control)

    def as_of(self, step_or_time: int | date | str) -> httpx2.AsyncClient:
        """`Sandbox.as_of`."""
        return _client(self.sync.as_of(step_or_time))

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[None]:
        """`Sandbox.snapshot`."""
        kept: AbstractContextManager[None] = self.sync.snapshot()
        await _awaited(kept.__enter__)
        try:
            yield
        finally:
            await _awaited(kept.__exit__, None, None, None)

    @asynccontextmanager
    async def fault(self, preset: str | None = None, **rule: Any) -> AsyncIterator[Fault]:
        """`Sandbox.fault`, for the length of the block."""
        fault = await _awaited(self.sync.fault, preset, **rule)
        try:
            yield fault
        finally:
            await _awaited(fault.delete)

    async def inbox(self, events: Sequence[str] = EVENTS) -> AsyncInbox:
        """`Sandbox.inbox`."""
        return AsyncInbox(await _awaited(self.sync.inbox, events))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await _awaited(self.sync.__exit__, kind, error, trace)


class AsyncInbox(_Awaitable):
    """An `Inbox` whose methods are awaited."""


def _client(client: httpx2.Client) -> httpx2.AsyncClient:
    own: Mapping[str, str] = client.headers
    # No connection is kept: nobody could close it, as a test's event loop ends before its fixtures
    # do.
    limits = httpx2.Limits(max_keepalive_connections=0)
    return httpx2.AsyncClient(
        base_url=client.base_url, headers=dict(own), timeout=30, limits=limits, trust_env=False
    )
