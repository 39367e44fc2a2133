"""The twin: a sandbox of this process that shows what the target should answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import unquote

from ...app import create_app
from ...server.layers.inside import Question, ask
from ...server.layers.routing import Application
from ...settings import Overlays, Settings
from .exchange import Answer, Request

_PEER = ("127.0.0.1", 50_000)


class Fork(NamedTuple):
    """A sandbox for one journey. `token` is the credential that opens it."""

    app: Application
    name: str
    token: str

    async def send(self, request: Request) -> Answer:
        """Its answer, without headers."""
        headers = {"host": "127.0.0.1:4600", "content-length": str(len(request.body))}
        headers |= {name.lower(): value for name, value in request.headers}
        headers["x-sandbox"] = self.name
        path = unquote(request.path)
        question = Question(request.method, path, request.query, headers, request.body)
        reply = await ask(self.app, "", question, _PEER)
        return Answer(reply.status, (), reply.body)


class Twin:
    """One sandbox. Each journey gets a fork of it."""

    def __init__(self, seed: int, overlays: Overlays = ()) -> None:
        """Raises ContractError."""
        self._app: Application = create_app(
            # plain: its credentials follow from the seed
            Settings(seed=seed, overlays=overlays, journal=1)
        )
        self._app.serve(self._app.server.silent())

    @asynccontextmanager
    async def fork(self) -> AsyncIterator[Fork]:
        """A fork that is deleted afterwards, with a credential that opens everything."""
        server = self._app.server
        sandbox = (await server.sandboxes.fork("default", None, None, None)).sandbox
        try:
            yield Fork(self._app, sandbox.name, server.ready_token(sandbox))
        finally:
            await server.sandboxes.delete(sandbox.name)
