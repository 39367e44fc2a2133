"""Serves the Flask pages: created at the first request for a page, run in a thread beside the event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import orjson
from a2wsgi.wsgi import build_environ

from ..calls.call import CONTROL, Answer, Call
from ..calls.sandboxes import credentials_of
from ..contract.document import Document
from ..http.access import check_control
from ..http.pages import Page
from ..http.refusals import Headers
from ..http.routing import DOCS
from ..kernel.problem import Forbidden
from ..kernel.slices import Lane
from .contract_files import File

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

WORLD = "stub_server.world"
"""Where the scope of a page of an operation has its World."""
_USUAL = (DOCS, f"{DOCS}/", "/swagger", "/redoc")
"""Where documentation is looked for that the front page has here."""


@dataclass(frozen=True, slots=True)
class World:
    """What a page of an operation shows of the requested world.

    `contract` is the one that the operation is of, with the examples that the request may see. `jwt` and `private_key`
    are None for callers who may not read the credentials.
    """

    name: str
    url: str
    contract: Document
    has_admin_key: bool
    jwt: str | None = None
    private_key: str | None = None


class Console:
    """A WSGI application as an ASGI application, imported and created at the first request.

    Its thread waits for nobody, and nobody for it when the server stops: one that waited for the event loop, which had
    ended, kept the process alive for ever.
    """

    def __init__(self, make: Callable[[], Any], contracts: Mapping[str, File]) -> None:
        """`contracts` are the files of the contract by the ids of their operations."""
        self._make, self._contracts = make, contracts
        self._app: WSGIApplication | None = None
        self._lane = Lane()

    async def answer(self, call: Call) -> Answer:
        """What the application answers."""
        if self._app is None:
            made = await self._lane.beside(self._make)  # importing Flask takes time; others are served meanwhile
            self._app = self._app or made  # two first requests may have come at once
        file = self._contracts.get(call.path.removeprefix(f"{DOCS}/"))
        further = {} if file is None else {WORLD: self._world(call, (await file.served(call)).body)}
        scope = {
            "type": "http", "http_version": "1.1", "method": call.method, "scheme": "http", "path": call.path,
            "query_string": call.query_string, "root_path": call.prefix, "headers": call.headers.items(),
        }  # fmt: skip
        # a2wsgi declares ASGI's types again.
        environ = build_environ(cast(Any, {**scope, **further}), cast(Any, BytesIO()))
        return await self._lane.beside(partial(copy_context().run, _answer, self._app, environ))

    def _world(self, call: Call, contract: bytes) -> World:
        """The world of a call; its credentials for those whom the control surface would tell them."""
        shown = Document(orjson.loads(contract))
        name, url, has_admin_key = call.sandbox.name, call.server.url + call.prefix, call.server.admin_key is not None
        try:
            check_control(call, f"{CONTROL}/credentials", call.sandbox.name)
        except Forbidden:
            return World(name, url, shown, has_admin_key)
        told = credentials_of(call, call.sandbox, call.prefix)
        return World(name, url, shown, has_admin_key, told["jwt"], told["private_key"])


def _answer(app: WSGIApplication, environ: Any) -> Answer:
    """The whole answer of a WSGI application."""
    begun: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Callable[..., object]:
        begun.append((status, headers))
        return lambda data: None

    parts = app(environ, start_response)
    try:
        body = b"".join(parts)
    finally:
        getattr(parts, "close", lambda: None)()
    status, headers = begun[-1]
    encoded: Headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return int(status[:3]), encoded, (body,), body


class _ToTheFront:
    """The front page lists every operation."""

    async def answer(self, call: Call) -> Answer:
        return 307, [(b"location", call.prefix.encode() + b"/"), (b"content-length", b"0")], (b"",), b""


def console_pages(make: Callable[[], Any], contracts: Mapping[str, File], files: Iterable[str]) -> dict[str, Page]:
    """The front page, the page of each operation, and what they load; `make` creates the WSGI application.

    `contracts` are the files of the contract by the ids of their operations.
    """
    console = Console(make, contracts)
    paths = ["/", "/favicon.ico", *(f"/static/{name}" for name in files), *(f"{DOCS}/{ident}" for ident in contracts)]
    pages: dict[str, Page] = dict.fromkeys(paths, console)
    return pages | dict.fromkeys(_USUAL, _ToTheFront())
