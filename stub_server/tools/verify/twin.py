"""A twin: a sandbox of this process that shows what the target should answer.

Two of them have different seeds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from ...app import create_app
from ...contract.document import JSON
from ...server.layers.inside import Question, ask
from ...server.layers.routing import Application
from ...settings import Settings
from .exchange import Answer, Headers, Request, bearer
from .target import PERSON, PUBLIC, Rights

_PEER = ("127.0.0.1", 50_000)


class Fork(NamedTuple):
    """A twin for one journey. `token` is the credential that opens it."""

    twin: Twin
    name: str
    token: str

    async def send(self, request: Request) -> Answer:
        """The twin's answer, without headers."""
        return await self.twin.send(
            request._replace(headers=(*request.headers, ("x-sandbox", self.name)))
        )


class Twin:
    """One sandbox. Each journey gets a fork of it."""

    def __init__(self, seed: int, overlays: tuple[Path, ...] = ()) -> None:
        """Raises ContractError."""
        self._app: Application = create_app(
            # plain: its credentials follow from the seed
            Settings(seed=seed, overlays=overlays, journal=1)
        )
        self._app.serve(self._app.server.silent())
        self._numbers = count(1)
        self.document = self._app.server.document

    @asynccontextmanager
    async def fork(self, rights: Rights) -> AsyncIterator[Fork]:
        """A fork that is deleted afterwards, with a credential that may do what that of
        the target may.
        """
        name = f"verify-{next(self._numbers)}"
        made = await self._control("POST", "/_sandbox/sandboxes/default/fork", {"name": name})
        fork = Fork(self, name, made["sandbox"]["credentials"]["jwt"])
        try:
            if rights.kind != PERSON:
                key = await self._key(fork, rights)
                fork = fork._replace(
                    token=key["public_key" if rights.kind == PUBLIC else "private_key"]
                )
            yield fork
        finally:
            await self._control("DELETE", f"/_sandbox/sandboxes/{name}")

    async def _key(self, fork: Fork, rights: Rights) -> Any:
        scopes = [scope["name"] for scope in self.document.scopes if scope["assignable"]]
        body: dict[str, Any] = {
            "name": "verify",
            "scopes": [name for name in scopes if name not in rights.lacking],
        }
        headers = (*bearer(fork.token), ("content-type", JSON))
        if rights.is_limited:
            listed = await fork.send(Request("GET", "/v2/projects", "limit=1", headers))
            body["allowed_projects"] = [listed.json()["data"]["projects"][0]["id"]]
        answer = await fork.send(Request("POST", "/api-keys", "", headers, orjson.dumps(body)))
        return answer.json()["api_key"]

    async def _control(self, method: str, path: str, body: Any = None) -> Any:
        headers: Headers = (("content-type", JSON),)
        answer = await self.send(
            Request(method, path, "", headers, b"" if body is None else orjson.dumps(body))
        )
        assert answer.status < 300, answer
        return answer.json()

    async def send(self, request: Request) -> Answer:
        """The answer of the sandbox, without headers."""
        headers = {"host": "127.0.0.1:4600", "content-length": str(len(request.body))}
        headers |= {name.lower(): value for name, value in request.headers}
        question = Question(
            request.method, unquote(request.path), request.query, headers, request.body
        )
        reply = await ask(self._app, "", question, _PEER)
        return Answer(reply.status, (), reply.body)
