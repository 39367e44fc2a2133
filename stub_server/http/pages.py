"""Pages: what is served beside the operations: the contract, the console, inboxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, Answer, Call
from ..engine.deliveries import INBOX
from ..kernel.problem import NotAllowed
from .hosts import inbox_at
from .inbox import answer_delivery

ALLOW = "GET, HEAD, OPTIONS"


class Page(Protocol):
    """What a path answers to GET and HEAD."""

    async def answer(self, call: Call) -> Answer:
        """Status, headers and body. Raises refusals."""


class Pages:
    """Answers paths that are none of the contract's. The journal keeps none of these requests."""

    def __init__(self, app: ASGIApp, pages: Mapping[str, Page]) -> None:
        self.app, self._pages = app, pages

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        path: str = scope["path"]
        page = self._pages.get(path)
        if page is not None:
            return _show(page, scope[CALL])
        if path.startswith(INBOX):
            name = inbox_at(scope["method"], path)
            if name is not None:
                return answer_delivery(name, scope, receive)
        return self.app(scope, receive, send)


async def _show(page: Page, call: Call) -> None:
    call.is_kept = False
    if call.method in ("GET", "HEAD"):
        call.answer = await page.answer(call)
    elif call.method == "OPTIONS":
        call.answer = 204, [(b"allow", ALLOW.encode())], (b"",), b""
    else:
        raise NotAllowed(f"This path answers {ALLOW}, not {call.method[:20]}.", headers={"Allow": ALLOW})
