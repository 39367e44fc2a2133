"""Requests without a network: the application is called as a server calls it, so
thousands take a moment.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any
from urllib.parse import quote, urlsplit

import orjson
from starlette.types import Message

from stub_server.server.layers.routing import Application

from ..support.wire import Answer as Answer

Json = dict[str, Any]


class Inside:
    """A caller with an event loop of its own; to be closed."""

    def __init__(self, app: Application) -> None:
        """Nothing is sent yet."""
        self.app = app
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        """Let the loop go."""
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Have something done on the loop."""
        return self._loop.run_until_complete(work)

    def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        token: str | None = None,
        idem: str | None = None,
        media: str = "application/json",
    ) -> Answer:
        """One request and its answer. A body that is bytes is sent as it is."""
        return self._loop.run_until_complete(self.asking(method, target, body, token, idem, media))

    async def asking(
        self,
        method: str,
        target: str,
        body: object = None,
        token: str | None = None,
        idem: str | None = None,
        media: str = "application/json",
        as_of: str | None = None,
    ) -> Answer:
        """A request beside others."""
        url = urlsplit(target)
        content = b"" if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        headers = [(b"host", b"127.0.0.1:4600")]
        if body is not None:
            headers += [
                (b"content-type", media.encode()),
                (b"content-length", b"%d" % len(content)),
            ]
        if token is not None:
            headers.append((b"authorization", b"Bearer " + token.encode()))
        if idem is not None:
            headers.append((b"idempotency-key", idem.encode()))
        if as_of is not None:
            headers.append((b"x-sandbox-as-of", as_of.encode()))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": url.path,
            "raw_path": quote(url.path).encode(),
            "query_string": url.query.encode(),
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 4600),
        }
        sent = []

        async def receive() -> Message:
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        begun, *parts = sent
        return Answer(
            begun["status"],
            [(name.decode(), value.decode("latin-1")) for name, value in begun["headers"]],
            b"".join(part["body"] for part in parts),
        )
