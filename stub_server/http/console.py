"""Serves the Flask pages: created at the first request for a page, run in threads beside the event loop."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from a2wsgi import WSGIMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..calls.call import Call
from .pages import refuse_method
from .router import CALL

WORKERS = 4


class Pages:
    """A WSGI application as an ASGI application, imported and created at the first request."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await refuse_method(scope["method"], send)
            return
        if self._app is None:
            made = await asyncio.to_thread(self._make)  # importing Flask takes time; others are served meanwhile
            if self._app is None:  # two first requests may have come at once
                # Starlette and a2wsgi declare the same ASGI types separately.
                self._app = cast(ASGIApp, WSGIMiddleware(made, workers=WORKERS))

        async def listed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = list(message["headers"])
            await send(message)

        call: Call = scope[CALL]
        await self._app({**scope, "root_path": call.prefix}, receive, listed)
