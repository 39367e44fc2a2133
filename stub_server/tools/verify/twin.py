"""A twin: a sandbox of this process that shows what the target should answer.

Two of them have different seeds.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from ...app import create_app
from ...contract.document import JSON
from ...core.record import Body
from ...server.layers.inside import Question, ask
from ...server.layers.routing import Application
from ...settings import Overlays, Settings
from .exchange import Answer, Request, bearer
from .target import PERSON, PUBLIC, Rights

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
        self.document = self._app.server.document

    @asynccontextmanager
    async def fork(self, rights: Rights) -> AsyncIterator[Fork]:
        """A fork that is deleted afterwards, with a credential that may do what that of
        the target may.
        """
        server = self._app.server
        sandbox = (await server.sandboxes.fork("default", None, None, None)).sandbox
        fork = Fork(self._app, sandbox.name, server.ready_token(sandbox))
        try:
            if rights.kind != PERSON:
                kind = "public_key" if rights.kind == PUBLIC else "private_key"
                fork = fork._replace(token=(await self._key(fork, rights))[kind])
            yield fork
        finally:
            await server.sandboxes.delete(sandbox.name)

    async def _key(self, fork: Fork, rights: Rights) -> Any:
        scopes = {scope["name"] for scope in self.document.scopes if scope["assignable"]}
        body: Body = {"name": "verify", "scopes": sorted(scopes - rights.lacking)}
        headers = (*bearer(fork.token), ("content-type", JSON))
        if rights.is_limited:
            listed = await fork.send(Request("GET", "/v2/projects", "limit=1", headers))
            body["allowed_projects"] = [listed.json()["data"]["projects"][0]["id"]]
        answer = await fork.send(Request("POST", "/api-keys", "", headers, orjson.dumps(body)))
        return answer.json()["api_key"]
