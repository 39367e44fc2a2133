"""A proxy between a client and a backend: passes each exchange on as it comes, and hands it to a
callback.

Bodies are streamed as they were encoded. Only `Host` is replaced, and the fields of one connection
(RFC 9110, 7.6.1) are left out.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from time import perf_counter
from urllib.parse import urlsplit

import httpx2
import uvicorn
from starlette.requests import ClientDisconnect
from starlette.requests import Request as Received
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from ...core.text import host_name, is_local
from ...server.layers.access import is_from_elsewhere
from ...server.request import OF_CONNECTIONS, has_body
from .exchange import Answer, Exchange, RawHeaders, Request, base_of, texts_of

JUDGED = 2 * 1024 * 1024  # bytes of a body that are kept to be judged
OWN = "/_proxy/exchanges"
"""This path is answered by the proxy itself."""
_TIMES = httpx2.Timeout(None, connect=10.0)  # seconds
_LIMITS = httpx2.Limits(max_connections=None, keepalive_expiry=2.0)
# Of a connection that the backend reset, uvloop has no socket, and looking at it raises one of the
# next two. The last two are raised for an answer that uvicorn does not write.
_LOST = (httpx2.HTTPError, AttributeError, ValueError, LookupError, RuntimeError)


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
        self._passed = passed
        self._own = own
        self._client = httpx2.AsyncClient(timeout=_TIMES, limits=_LIMITS, trust_env=False)

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
            await self._client.aclose()
            await send({"type": "lifespan.shutdown.complete"})
            return
        headers = dict(scope["headers"])
        is_own = scope["path"] == OWN
        # another host would be a web page whose name was rebound to this machine
        host = host_name(headers.get(b"host", b"").decode("latin-1"))
        if not is_local(host) or (is_own and is_from_elsewhere(headers)):
            message = "Only programs on this machine may ask this. Use the address 127.0.0.1."
            await _refusal(403, message, "forbidden")(scope, receive, send)
        elif is_own:
            await Response(self._own(), media_type="application/json")(scope, receive, send)
        else:
            await self._pass_on(Received(scope, receive), send)

    async def _pass_on(self, request: Received, send: Send) -> None:
        """Send a request on, and its answer back.

        An answer that breaks off does so for the client too: uvicorn ends the connection of one
        whose end is not sent.
        """
        sent = bytearray()
        said = bytearray()
        began = perf_counter()
        answered = Answer(0)
        failure = ""
        try:
            answer = await self._client.send(self._request(request, sent), stream=True)
            async with aclosing(answer):
                answered = Answer(answer.status_code, texts_of(answer.headers.raw))
                headers = _passed_on(answer.headers.raw)
                start = {"type": "http.response.start", "status": answered.status}
                await send(start | {"headers": headers})
                async for piece in answer.aiter_raw():
                    _keep(said, piece)
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        except ClientDisconnect:
            return
        except _LOST as error:
            failure = str(error) or type(error).__name__
        scope = request.scope
        path = scope["raw_path"].decode("latin-1")
        query = scope["query_string"].decode("latin-1")
        asked = Request(scope["method"], path, query, texts_of(scope["headers"]), bytes(sent))
        whole = answered._replace(body=bytes(said), seconds=perf_counter() - began)
        self._passed(Exchange(asked, Answer(0, (), failure.encode()) if failure else whole))
        if not failure:
            await send({"type": "http.response.body", "body": b""})
        elif not answered.status:
            message = (
                f"The backend did not answer: {failure}. Is it running, and is the address right?"
            )
            await _refusal(502, message, "target_unreachable")(scope, request.receive, send)

    def _request(self, request: Received, sent: bytearray) -> httpx2.Request:
        """The request as it came, for the host of the backend."""
        scope = request.scope
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        path = urlsplit(self._target).path.encode() + scope["raw_path"]
        return httpx2.Request(
            scope["method"],
            self._target,
            headers=[pair for pair in _passed_on(scope["headers"]) if pair[0] != b"host"],
            content=_received(request, sent) if has_body(dict(scope["headers"])) else None,
            extensions={"target": path + query},
        )


async def _received(request: Received, sent: bytearray) -> AsyncGenerator[bytes]:
    """The body of a request as it comes. Raises ClientDisconnect."""
    async for piece in request.stream():
        if piece:
            _keep(sent, piece)
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
