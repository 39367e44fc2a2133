"""A twin: a sandbox of this process that shows what the target should answer. Two of them have different seeds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson

from ..app import create_app
from ..contract.document import JSON
from ..explain.rehearsal import silent
from ..http.inside import Question, ask
from ..http.routing import Application
from ..settings import Settings
from .exchange import Answer, Request, bearer

_KEY = "of the twins"


class Fork:
    """A twin for one journey."""

    def __init__(self, app: Application, name: str, token: str) -> None:
        self._app, self._name, self.token = app, name, token

    async def send(self, request: Request) -> Answer:
        """The twin's answer."""
        return await called(self._app, request._replace(headers=(*request.headers, ("x-sandbox", self._name))))


class Twin:
    """One sandbox. Each journey gets a fork of it."""

    def __init__(self, seed: int, overlays: tuple[Path, ...] = ()) -> None:
        """Raises ContractError."""
        self._app = create_app(Settings(seed=seed, overlays=overlays, admin_key=_KEY, journal=1, base_url=None))
        self._app.serve(silent(self._app.server))
        self._numbers = count(1)
        self.document = self._app.server.document

    @asynccontextmanager
    async def fork(self, *, as_key: bool = False) -> AsyncIterator[Fork]:
        """A fork that is deleted afterwards, and its credential: a JWT, or an API key with all scopes."""
        name = f"verify-{next(self._numbers)}"
        made = await self._control("POST", "/_sandbox/sandboxes/default/fork", {"name": name})
        token = made["sandbox"]["credentials"]["jwt"]
        try:
            if as_key:
                scopes = [scope["name"] for scope in self.document.scopes if scope["assignable"]]
                body = orjson.dumps({"name": "verify", "scopes": scopes})
                headers = (*bearer(token), ("content-type", JSON))
                answer = await Fork(self._app, name, token).send(Request("POST", "/api-keys", "", headers, body))
                token = answer.json()["api_key"]["private_key"]
            yield Fork(self._app, name, token)
        finally:
            await self._control("DELETE", f"/_sandbox/sandboxes/{name}")

    async def _control(self, method: str, path: str, body: Any = None) -> Any:
        headers: tuple[tuple[str, str], ...] = (("x-sandbox-admin-key", _KEY),)
        if body is not None:
            headers += (("content-type", JSON),)
        answer = await called(
            self._app, Request(method, path, "", headers, b"" if body is None else orjson.dumps(body))
        )
        assert answer.status < 300, answer
        return answer.json()


async def called(app: Application, request: Request) -> Answer:
    """The answer of an application in this process."""
    sent = {"host": "127.0.0.1:4600"} | {name.lower(): value for name, value in request.headers}
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        sent["content-length"] = str(len(request.body))
    question = Question(request.method, unquote(request.path), request.query, sent, request.body)
    answer = await ask(app, "", question, ("127.0.0.1", 50_000))
    await asyncio.sleep(0)
    return Answer(answer.status, tuple(answer.headers.items()), answer.body)
