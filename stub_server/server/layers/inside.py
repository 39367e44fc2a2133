"""Requests that this server sends to itself, for a page: each passes every layer, as one from a
socket would.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..reply import Forwarded, HungUp
from ..work import Work

FROM_A_PAGE = "stub_server.from_a_page"
"""In the scope of a request that this server itself sends to show a page: whether it only reads,
and pairs of method and path of the control surface that the page may request without a key.
"""


class Question(NamedTuple):
    """A request. `path` is the one in its sandbox, `headers` are by name in lower case.

    A request that `is_internal` only reads, for a page: the journal, rate limits and fault rules
    ignore it.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    body: bytes = b""
    is_internal: bool = False


class Reply(NamedTuple):
    """The answer; its `status` is 0 where a fault rule dropped the connection."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON, None where it is not JSON."""
        try:
            return orjson.loads(self.body)
        except ValueError:
            return None

    @property
    def request_id(self) -> str:
        """The id under which the journal may have the request."""
        return self.headers.get("x-request-id", "")

    @property
    def is_refused(self) -> bool:
        """Whether it is neither a success nor a redirect."""
        return not 200 <= self.status < 400


async def ask(
    app: ASGIApp,
    prefix: str,
    question: Question,
    peer: tuple[str, int] | None,
    permitted: Collection[tuple[str, str]] = (),
) -> Reply:
    """The answer of the outermost layer to a request to the sandbox of a prefix.

    `permitted` are methods and paths of the control surface that need no key.
    """
    sent: list[Message] = []
    has_asked = asyncio.Event()

    async def receive() -> Message:
        if has_asked.is_set():  # the whole request has been received
            await asyncio.Event().wait()
        has_asked.set()
        return {"type": "http.request", "body": question.body}

    async def send(message: Message) -> None:
        sent.append(message)

    try:
        await app(scope_of(prefix, question, peer, permitted), receive, send)
    except HungUp:
        return Reply(0, {}, b"")
    head, *parts = sent
    return Reply(
        head["status"],
        {name.decode("latin-1"): value.decode("latin-1") for name, value in head["headers"]},
        b"".join(part.get("body", b"") for part in parts),
    )


def scope_of(
    prefix: str,
    question: Question,
    peer: tuple[str, int] | None,
    permitted: Collection[tuple[str, str]] = (),
) -> Scope:
    """The scope of a request that this server makes itself."""
    path = prefix + question.path
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": question.method,
        "scheme": "http",
        "path": path,
        "raw_path": quote(path, errors="surrogatepass").encode(),
        "query_string": question.query.encode("latin-1", "replace"),
        "root_path": "",
        "headers": [
            (name.encode(), value.encode("latin-1", "replace"))
            for name, value in question.headers.items()
        ],
        "client": peer,
        "server": None,
        "extensions": {},
        "state": {},
        FROM_A_PAGE: (question.is_internal, permitted),
    }


def relay(work: Work, app: ASGIApp, question: Question) -> Forwarded:
    """The answer to a request, sent as it comes, as that of the page which makes it."""

    async def passage(scope: Scope, receive: Receive, send: Send) -> None:
        async def pass_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                work.trace.status = message["status"]
            await send(message)

        asked = scope_of(work.prefix, question, work.request.client)
        await app({**asked, "state": scope.get("state", {})}, receive, pass_on)

    return Forwarded(passage)
