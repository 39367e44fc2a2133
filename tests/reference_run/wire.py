"""A request as both applications get it, and what one made of it."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `path` and `query` as they are sent, `about` what it tries."""

    method: str
    path: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    about: str = ""


@dataclass(slots=True)
class Decision:
    """The operation that a request was routed to, if any, and whether its handler would
    have been called.
    """

    operation: str | None = None
    is_accepted: bool = False
    status: int = 0


async def send(app: Any, request: Request, **extra: Any) -> int:
    """Call an ASGI application; the status of its answer. `extra` is put into the scope."""
    headers = [("host", "127.0.0.1:4600"), *request.headers]
    if request.body:
        headers.append(("content-length", str(len(request.body))))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote(request.path),
        "raw_path": request.path.encode(),
        "query_string": request.query.encode(),
        "root_path": "",
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers
        ],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 4600),
        "state": {},
        **extra,
    }
    messages = [{"type": "http.request", "body": request.body, "more_body": False}]
    status = 0

    async def receive() -> Any:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def answer(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]

    await app(scope, receive, answer)
    return status
