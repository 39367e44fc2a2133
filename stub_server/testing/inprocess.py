"""A server in the process of the tests, without a port."""

import asyncio
import warnings
from collections.abc import MutableMapping
from datetime import date
from typing import Any, Self

from ..kernel.clock import parse_iso
from ..settings import Settings
from .sandbox import instant

with warnings.catch_warnings():  # of Connexion's imports, where warnings are errors
    warnings.simplefilter("ignore", DeprecationWarning)
    from ..app import create_app


class asgi:
    """An ASGI application: `async with asgi(seed=7) as app` runs its lifespan, for `httpx2.ASGITransport(app)`.

    Starlette's `TestClient(asgi(seed=7))` runs the lifespan itself. `settings` are those of `stub_server.settings`. The
    base address of clients is `http://127.0.0.1:4600`, unless `base_url` says otherwise.
    """

    def __init__(self, *, now: date | str | None = None, **settings: Any) -> None:
        """Seed the default sandbox. Raises what `create_app` raises."""
        self._app = create_app(Settings(now=None if now is None else parse_iso(instant(now)), **settings))

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)

    async def __aenter__(self) -> Self:
        self._inbox: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._outbox: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        scope: MutableMapping[str, Any] = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        self._running = asyncio.create_task(self._app(scope, self._inbox.get, self._outbox.put))
        await self._inbox.put({"type": "lifespan.startup"})
        await self._outbox.get()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._inbox.put({"type": "lifespan.shutdown"})
        await self._running
