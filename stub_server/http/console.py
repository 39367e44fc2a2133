"""The door to the Flask pages: made when a page is first asked for, run in threads beside the event loop."""

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
    """A WSGI application as an ASGI page; importing and making it waits for the first visitor."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            await refuse_method(scope["method"], send)
            return
        if self._app is None:
            made = await asyncio.to_thread(self._make)  # reading Flask takes a while, and others are served meanwhile
            if self._app is None:  # two first visitors may have come at once
                # Starlette's ASGI types and a2wsgi's say the same in other words.
                self._app = cast(ASGIApp, WSGIMiddleware(made, workers=WORKERS))

        async def listed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = list(message["headers"])
            await send(message)

        call: Call = scope[CALL]
        await self._app({**scope, "root_path": call.prefix}, receive, listed)
