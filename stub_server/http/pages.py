"""Pages: paths that are not operations: the contract, the console, inboxes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import orjson
from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, Answer, Call
from ..delivery.inbox import is_name
from ..engine.deliveries import INBOX
from ..journal.entries import joined
from ..kernel.clock import wall_ms
from ..kernel.problem import NotFound, Refusal
from .access import CONSOLE, inbox_at
from .answers import Headers, not_allowed, options
from .selection import create_pending

_BODILESS = (204, 205, 304)
_BELOW = (*CONSOLE, "/guide/", INBOX)  # what paths begin with that are not listed
_FORM = b"application/x-www-form-urlencoded"
MOST_FIELDS = 1_000  # of a form; of one with files werkzeug reads no more either
ALLOW = "GET, HEAD, OPTIONS"
ALLOW_FORMS = "GET, HEAD, POST, OPTIONS"
Page: TypeAlias = Callable[[Call], Awaitable[Answer]]
"""What a path answers. It raises refusals."""


class Pages:
    """Answers paths that are not in the contract. The journal stores none of these requests."""

    def __init__(self, app: ASGIApp, pages: Mapping[str, Page], console: Page, most: Callable[[Call], int]) -> None:
        """`console` answers pages that are not listed, below `CONSOLE` POST too: the body of a form is in the call.

        `most` is how many bytes of a form are read.
        """
        self.app, self._pages, self._console, self._most = app, pages, console, most

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        path: str = scope["path"]
        page = self._pages.get(path)
        if page is not None:
            return _show(page, scope[CALL], ALLOW)
        if path.startswith(_BELOW):
            if not path.startswith(INBOX):
                return self._show_console(scope[CALL], receive)
            name = inbox_at(scope["method"], path)
            if name is not None:
                return answer_delivery(name, scope, receive)
        return self.app(scope, receive, send)

    async def _show_console(self, call: Call, receive: Receive) -> None:
        has_forms = call.path.startswith(CONSOLE)
        if has_forms and call.method == "POST":
            call.is_kept = False
            call.body_bytes = bytes(await call.read(receive, self._most(call)))
            _check_fields(call)
        await _show(self._console, call, ALLOW_FORMS if has_forms else ALLOW)


async def _show(page: Page, call: Call, allow: str) -> None:
    call.is_kept = False
    if call.method == "OPTIONS":
        call.answer = options(allow)
    elif call.method in allow.split(", "):
        call.answer = await page(call)
    else:
        raise not_allowed(call.method, allow)


def _check_fields(call: Call) -> None:
    """Raises a 413 for a form of very many fields."""
    is_plain = call.headers.get(b"content-type", b"").lower().startswith(_FORM)
    if is_plain and call.body_bytes.count(b"&") >= MOST_FIELDS:
        message = f"The form has more than {MOST_FIELDS:,} fields, the most that is read."
        raise Refusal(message, status=413, code="payload_too_large")


async def answer_delivery(name: str, scope: Scope, receive: Receive) -> None:
    """Put a request into the inbox of this name. It has no operation: senders decide what they post.

    Raises NotFound.
    """
    if is_name(name) is None:
        raise NotFound("The name of an inbox has 1 to 63 of the characters A-Z, a-z, 0-9, -, _ and .")
    call: Call = scope[CALL]
    body = bytes(await call.read(receive))
    await create_pending(call)
    sent = joined((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
    inbox = call.entry.inbox
    message = inbox.receive(call.sandbox, name, sent, body, wall_ms())
    wanted, reason = message.answer, message.verdict.reason
    if wanted.delay_ms:
        with call.server.waiting.take(call.sandbox.name):
            await asyncio.sleep(wanted.delay_ms / 1000)
    headers, content = {header["name"].lower(): header["value"] for header in wanted.headers}, b""
    if wanted.status not in _BODILESS:
        content = orjson.dumps({"received": message.number, "verified": reason is None, "reason": reason})
        headers |= {"content-type": "application/json", "content-length": str(len(content))}
    encoded: Headers = [(header.encode(), value.encode()) for header, value in headers.items()]
    call.answer = wanted.status, encoded, (content,), content
