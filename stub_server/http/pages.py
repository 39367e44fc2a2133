"""Pages: what is served beside the operations: the contract, the console, inboxes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

import orjson
from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, Answer, Call
from ..delivery.inbox import Answer as Told
from ..delivery.inbox import Message, is_name
from ..engine.deliveries import INBOX
from ..kernel.clock import wall_ms
from ..kernel.problem import Missing, NotAllowed
from .access import CONSOLE, inbox_at
from .answers import Headers
from .selection import create_pending

_BODILESS = (204, 205, 304)
ALLOW = "GET, HEAD, OPTIONS"
ALLOW_FORMS = "GET, HEAD, POST, OPTIONS"


class Page(Protocol):
    """What a path answers to GET and HEAD."""

    async def answer(self, call: Call) -> Answer:
        """Status, headers and body. Raises refusals."""


class Forms(Page, Protocol):
    """What a path answers that takes forms."""

    def most(self, call: Call) -> int:
        """How many bytes of a form are read."""


class Pages:
    """Answers paths that are none of the contract's. The journal keeps none of these requests."""

    def __init__(self, app: ASGIApp, pages: Mapping[str, Page], console: Forms) -> None:
        """`console` answers the paths below `CONSOLE`, to POST as well: the body of a form is in the call."""
        self.app, self._pages, self._console = app, pages, console

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        path: str = scope["path"]
        page = self._pages.get(path)
        if page is not None:
            return _show(page, scope[CALL])
        if path.startswith(CONSOLE):
            return _show_form(self._console, scope[CALL], receive)
        if path.startswith(INBOX):
            name = inbox_at(scope["method"], path)
            if name is not None:
                return answer_delivery(name, scope, receive)
        return self.app(scope, receive, send)


async def _show_form(page: Forms, call: Call, receive: Receive) -> None:
    """Have a page answer that takes forms."""
    if call.method == "POST":
        call.is_kept = False
        call.body_bytes = bytes(await call.read(receive, page.most(call)))
    await _show(page, call, ALLOW_FORMS)


async def _show(page: Page, call: Call, allow: str = ALLOW) -> None:
    """Have a page answer."""
    call.is_kept = False
    if call.method == "OPTIONS":
        call.answer = 204, [(b"allow", allow.encode())], (b"",), b""
        return
    if call.method not in allow.split(", "):
        raise NotAllowed(f"This path answers {allow}, not {call.method[:20]}.", headers={"Allow": allow})
    call.answer = await page.answer(call)


async def answer_delivery(name: str, scope: Scope, receive: Receive) -> None:
    """Keep a request in the inbox of this name. It is no operation: senders decide what they post. Raises Missing."""
    if is_name(name) is None:
        raise Missing("The name of an inbox has 1 to 63 of the characters A-Z, a-z, 0-9, -, _ and .")
    call: Call = scope[CALL]
    body = bytes(await call.read(receive))
    await create_pending(call)
    headers = _joined(scope["headers"])
    message = call.server.sandboxes.entry(call.sandbox.name).inbox.receive(call.sandbox, name, headers, body, wall_ms())
    if message.answer.delay_ms:
        with call.server.waiting.of(call):
            await asyncio.sleep(message.answer.delay_ms / 1000)
    answer = b"" if message.answer.status in _BODILESS else _body(message)
    head: Headers = [(key.encode(), value.encode()) for key, value in _headers(message.answer, len(answer)).items()]
    call.answer = message.answer.status, head, (answer,), answer


def _body(message: Message) -> bytes:
    verdict = message.verdict
    told = {"received": message.number, "verified": verdict.reason is None, "reason": verdict.reason}
    return orjson.dumps(told)


def _headers(answer: Told, length: int) -> dict[str, str]:
    own = {name.lower(): value for name, value in answer.headers}
    return (
        own
        if answer.status in _BODILESS
        else {**own, "content-type": "application/json", "content-length": str(length)}
    )


def _joined(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name, several of one name in one value."""
    joined: dict[str, str] = {}
    for raw, value in headers:
        name, text = raw.decode("latin-1"), value.decode("latin-1")
        joined[name] = f"{joined[name]}, {text}" if name in joined else text
    return joined
