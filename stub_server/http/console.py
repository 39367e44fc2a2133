"""Serves the Flask pages: created at the first request for a page, run in threads beside the event loop."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from a2wsgi import WSGIMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..calls.beginning import credentials_of
from ..calls.call import CONTROL, Call
from ..contract.source import Json
from ..kernel.problem import Forbidden
from .door import check_control
from .pages import NAMED, refuse_method, world_values
from .router import CALL, DOCS

WORKERS = 4
WORLD = "stub_server.world"
"""Where the scope of a page of an operation has its World."""
_USUAL = (DOCS, f"{DOCS}/", "/swagger", "/redoc")
"""Where documentation is looked for that the front page has here."""


@dataclass(frozen=True, slots=True)
class World:
    """What a page of an operation shows of the requested world.

    `values` are to be replaced in the contract's examples, one after the other. `jwt` and `private_key` are None for
    whoever may not read the credentials.
    """

    name: str
    url: str
    values: Mapping[str, str]
    has_admin_key: bool
    jwt: str | None = None
    private_key: str | None = None


class Pages:
    """A WSGI application as an ASGI application, imported and created at the first request."""

    def __init__(self, make: Callable[[], Any], named: Mapping[str, list[str]]) -> None:
        """`named` are the values of the contract's examples by kind of record."""
        self._make, self._named = make, named
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
        further = {WORLD: self._world(call)} if scope["path"].startswith(DOCS) else {}
        await self._app({**scope, **further, "root_path": call.prefix}, receive, listed)

    def _world(self, call: Call) -> World:
        """The world of a call; its credentials for those whom the control surface would tell them."""
        values = {old.decode(): new.decode() for old, new in world_values(self._named, call).items()}
        name, url, has_admin_key = call.sandbox.name, call.server.url + call.prefix, call.server.admin_key is not None
        try:
            check_control(call, f"{CONTROL}/credentials")
        except Forbidden:
            return World(name, url, values, has_admin_key)
        told = credentials_of(call, call.sandbox, call.prefix)
        return World(name, url, values, has_admin_key, told["jwt"], told["private_key"])


async def _to_the_front(scope: Scope, receive: Receive, send: Send) -> None:
    """The front page lists every operation."""
    if scope["method"] not in ("GET", "HEAD"):
        await refuse_method(scope["method"], send)
        return
    call: Call = scope[CALL]
    headers = [(b"location", call.prefix.encode() + b"/"), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 307, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def console_pages(
    make: Callable[[], Any], api: Json, operations: Iterable[str], files: Iterable[str]
) -> dict[str, ASGIApp]:
    """The front page, the page of each operation, and what they load; `make` creates the WSGI application."""
    console = Pages(make, api.get(NAMED, {}))
    paths = ["/", "/favicon.ico", *(f"/static/{name}" for name in files), *(f"{DOCS}/{ident}" for ident in operations)]
    return dict.fromkeys(paths, console) | dict.fromkeys(_USUAL, _to_the_front)
