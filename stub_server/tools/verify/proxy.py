"""A proxy between a client and a backend: passes each exchange on as it comes, and hands it to a
callback.

Bodies are streamed as they were encoded. Only `Host` is replaced, and the fields of one connection
(RFC 9110, 7.6.1) are left out.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from time import perf_counter
from urllib.parse import urlsplit

import httpcore2
import uvicorn
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from ...core.text import host_name, is_local
from ...server.layers.access import is_from_elsewhere
from ...server.layers.forwarding import LOST
from ...server.request import OF_CONNECTIONS, has_body
from .exchange import Answer, Exchange, RawHeaders, Request, base_of, texts_of

JUDGED = 2 * 1024 * 1024  # bytes of a body that are kept to be judged
OWN = "/_proxy/exchanges"
"""This path is answered by the proxy itself."""
_CONNECT = 10.0  # seconds
_LAST_STATUS = 599  # that uvicorn can write


class Proxy:
    """The ASGI application. One per target."""

    def __init__(
        self,
        target: str,
        passed: Callable[[Exchange], None],
        own: Callable[[], bytes],
    ) -> None:
        """`passed` is called with each exchange, its bodies as they were transferred, cut after
        more than `JUDGED` bytes; `own` is the JSON that answers requests to `OWN`.
        """
        self._target = base_of(target)
        self._passed, self._own = passed, own
        self._pool = httpcore2.AsyncConnectionPool(max_connections=None, keepalive_expiry=2.0)

    def config(self) -> uvicorn.Config:
        """How uvicorn serves it: without headers of its own."""
        return uvicorn.Config(
            self,
            lifespan="on",
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=2,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await self._pool.aclose()
            await send({"type": "lifespan.shutdown.complete"})
            return
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        if path == OWN or not _is_for_this_machine(scope):
            await self._owned(scope)(scope, receive, send)
            return
        sent, said, began = bytearray(), bytearray(), perf_counter()
        status, failure = 0, ""
        try:
            async with aclosing(
                await self._pool.handle_async_request(self._request(scope, receive, sent))
            ) as answer:
                if answer.status > _LAST_STATUS:
                    raise httpcore2.RemoteProtocolError(f"the status {answer.status} is none")
                status, headers = answer.status, _passed_on(answer.headers)
                await send({"type": "http.response.start", "status": status, "headers": headers})
                async for piece in answer.aiter_stream():
                    _keep(said, piece)
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        except _Left:
            return
        except LOST as error:
            failure = str(error) or type(error).__name__
        took = perf_counter() - began
        answered = Answer(0, (), failure.encode(), took)
        if not failure:
            answered = Answer(status, texts_of(answer.headers), bytes(said), took)
        asked = Request(scope["method"], path, query, texts_of(scope["headers"]), bytes(sent))
        self._passed(Exchange(asked, answered))
        if not failure:
            await send({"type": "http.response.body", "body": b""})
        elif not status:
            message = (
                f"The backend did not answer: {failure}. Is it running, and is the address right?"
            )
            await _refusal(502, message, "target_unreachable")(scope, receive, send)
        # An answer that breaks off here breaks off for the client too: uvicorn ends the connection.

    def _request(self, scope: Scope, receive: Receive, sent: bytearray) -> httpcore2.Request:
        parts = urlsplit(self._target)
        host = parts.netloc.encode()
        headers = [(n, host if n == b"host" else v) for n, v in _passed_on(scope["headers"])]
        named = dict(scope["headers"])
        if b"transfer-encoding" in named:
            headers.append((b"transfer-encoding", b"chunked"))
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        return httpcore2.Request(
            scope["method"],
            self._target,
            headers=headers,
            content=_received(receive, sent) if has_body(named) else None,
            extensions={
                "target": parts.path.encode() + scope["raw_path"] + query,
                "timeout": {"connect": _CONNECT},
            },
        )

    def _owned(self, scope: Scope) -> Response:
        """Answer programs on this machine only."""
        if is_from_elsewhere(dict(scope["headers"])) or not _is_for_this_machine(scope):
            return _refusal(
                403,
                "Only programs on this machine may ask this. Use the address 127.0.0.1.",
                "forbidden",
            )
        return Response(self._own(), media_type="application/json")


def _is_for_this_machine(scope: Scope) -> bool:
    """Whether Host names this machine. Another would be a web page whose name was rebound to it."""
    host = dict(scope["headers"]).get(b"host", b"")
    return is_local(host_name(host.decode("latin-1")))


class _Left(Exception):
    """The client has left before its request was whole."""


async def _received(receive: Receive, sent: bytearray) -> AsyncGenerator[bytes]:
    """The body of a request as it comes. Raises _Left."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Left
        piece, more = message.get("body", b""), message.get("more_body", False)
        _keep(sent, piece)
        if piece:
            yield piece


def _keep(body: bytearray, piece: bytes) -> None:
    """Add a piece to what is kept of a body, which shows whether it is larger than `JUDGED`."""
    if len(body) <= JUDGED:
        body += piece


def _passed_on(headers: RawHeaders) -> RawHeaders:
    """The headers without those of the connection."""
    listed = b",".join(value for name, value in headers if name.lower() == b"connection")
    left_out = OF_CONNECTIONS | {each.strip().lower() for each in listed.split(b",")}
    return [(name, value) for name, value in headers if name.lower() not in left_out]


def _refusal(status: int, message: str, code: str) -> Response:
    """An error in the contract's shape."""
    body = {"error": True, "message": message, "code": code, "status": status}
    return JSONResponse(body | {"request_id": "", "details": []}, status)
