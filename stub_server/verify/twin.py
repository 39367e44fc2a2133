"""A twin: a sandbox of this process that shows what the target should answer. Two of them have different seeds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from ..app import create_app
from ..contract.document import JSON
from ..explain.rehearsal import silent
from ..http.inside import Question, ask
from ..http.routing import Application
from ..settings import Settings
from .exchange import Answer, Headers, Request, bearer

_PEER = ("127.0.0.1", 50_000)


class Fork(NamedTuple):
    """A twin for one journey. `token` is the credential that opens it."""

    twin: Twin
    name: str
    token: str

    async def send(self, request: Request) -> Answer:
        """The twin's answer, without headers."""
        return await self.twin.send(request._replace(headers=(*request.headers, ("x-sandbox", self.name))))


class Twin:
    """One sandbox. Each journey gets a fork of it."""

    def __init__(self, seed: int, overlays: tuple[Path, ...] = ()) -> None:
        """Raises ContractError."""
        self._app: Application = create_app(
            Settings(seed=seed, overlays=overlays, journal=1)  # plain: its credentials follow from the seed
        )
        self._app.serve(silent(self._app.server))
        self._numbers = count(1)
        self.document = self._app.server.document

    @asynccontextmanager
    async def fork(self, *, as_key: bool = False) -> AsyncIterator[Fork]:
        """A fork that is deleted afterwards. Its credential is a JWT, or an API key with all scopes."""
        name = f"verify-{next(self._numbers)}"
        made = await self._control("POST", "/_sandbox/sandboxes/default/fork", {"name": name})
        fork = Fork(self, name, made["sandbox"]["credentials"]["jwt"])
        try:
            if as_key:
                scopes = [scope["name"] for scope in self.document.scopes if scope["assignable"]]
                body = orjson.dumps({"name": "verify", "scopes": scopes})
                headers = (*bearer(fork.token), ("content-type", JSON))
                answer = await fork.send(Request("POST", "/api-keys", "", headers, body))
                fork = fork._replace(token=answer.json()["api_key"]["private_key"])
            yield fork
        finally:
            await self._control("DELETE", f"/_sandbox/sandboxes/{name}")

    async def _control(self, method: str, path: str, body: Any = None) -> Any:
        headers: Headers = (("content-type", JSON),)
        answer = await self.send(Request(method, path, "", headers, b"" if body is None else orjson.dumps(body)))
        assert answer.status < 300, answer
        return answer.json()

    async def send(self, request: Request) -> Answer:
        """The answer of the sandbox, without headers."""
        headers = {"host": "127.0.0.1:4600", "content-length": str(len(request.body))}
        headers |= {name.lower(): value for name, value in request.headers}
        question = Question(request.method, unquote(request.path), request.query, headers, request.body)
        reply = await ask(self._app, "", question, _PEER)
        return Answer(reply.status, (), reply.body)
