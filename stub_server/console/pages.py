"""Serves the Flask pages: created at the first request for a page, run in threads beside the event
loop.

A view asks the control surface like any other client (`client.py`) and waits for the answer in its
thread. When the request ends, its view waits no longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from a2wsgi.wsgi import build_environ

from ..core.problem import Forbidden, NotFound
from ..server.layers import inside
from ..server.layers.access import check_control
from ..server.layers.inside import Question, Reply
from ..server.layers.pages import Page
from ..server.layers.routing import DOCS
from ..server.reply import Answer, Headers
from ..server.request import CONTROL, LARGEST_BODY
from ..server.work import Work
from .client import ASK, ASKED, LOST, VISITOR, Ask
from .sessions import ADMIN_KEY, CONTROL_KEY, Sessions, Visitor

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

# views at a time, and as many actions of each sandbox, which may wait: others are served all the
# same
_THREADS = 4
_RELAYED = {
    f"/console/{name}": f"{CONTROL}/{name}" for name in ("stream", "requests.har", "export")
}
"""What is sent as the control sends it, to those who have a session."""
IMPORT = "/console/sandboxes/import"
LARGEST_FILE = 64 * 1024 * 1024  # bytes; the command reads larger ones
GUIDE = "/guide"
PAY = "/pay/"
"""What the addresses of the pages of payers begin with."""
MOVES = ("pay", "expire", "fail")
"""What a payer may have become of an order: the names of the controls."""


class Console:
    """A WSGI application as a page, imported and created at the first request."""

    def __init__(self, make: Callable[[], Any], app: Callable[[], Any], sessions: Sessions) -> None:
        """`app` returns the whole stack."""
        self._make, self._stack, self._sessions = make, app, sessions
        self._app: WSGIApplication | None = None
        self._creating = asyncio.Lock()  # else each of the first requests would create one
        self._showing = ThreadPoolExecutor(_THREADS)
        self._acting = WeakValueDictionary[str, ThreadPoolExecutor]()

    async def answer(self, work: Work) -> Answer:
        """What the application answers."""
        if work.path in _RELAYED and work.request.method == "GET":
            return self._relay(work)
        loop, threads = asyncio.get_running_loop(), self._showing
        async with self._creating:
            # importing Flask takes time; others are served meanwhile
            app: Any = self._app or await loop.run_in_executor(self._showing, self._make)
            self._app = app
        name, asked = work.sandbox.name, list[Future[Reply]]()
        environ = _environ(work)
        environ[ASK] = self._asking(work, asked)
        environ[ASKED], environ[VISITOR] = name, self._visitor(work)
        lost = environ[LOST] = list[NotFound]()
        if work.request.method == "POST":
            threads = self._acting.setdefault(name, ThreadPoolExecutor(_THREADS))
        try:
            with work.server.waiting.take(name):
                view = partial(copy_context().run, _answer, app, environ)
                answer: Answer = await loop.run_in_executor(threads, view)
        finally:
            for each in asked:
                each.cancel()
            asked.clear()
        if lost:
            raise lost.pop()  # else it and its traceback would refer to each other
        return answer

    def _asking(self, work: Work, asked: list[Future[Reply]]) -> Ask:
        """What a view asks with: it waits in its thread for what is `asked` in the event loop."""
        loop, permitted = asyncio.get_running_loop(), _permitted(work.path)

        def ask(question: Question, prefix: str | None) -> Reply:
            asked_of = work.prefix if prefix is None else prefix
            asking = inside.ask(self._stack(), asked_of, question, work.request.client, permitted)
            answer = asyncio.run_coroutine_threadsafe(asking, loop)
            asked.append(answer)
            return answer.result()

        return ask

    def most(self, work: Work) -> int:
        """How many bytes of a form are read; those of a file of those alone whom the control
        surface lets in.
        """
        try:
            if not self._visitor(work).keys:
                check_control(work, CONTROL, work.sandbox.name)
        except Forbidden:
            return LARGEST_BODY
        return LARGEST_FILE if work.path == IMPORT else LARGEST_BODY

    def _relay(self, work: Work) -> Answer:
        """Send a control's answer on as it comes, with the key of the visitor's session.

        Raises Forbidden.
        """
        request = work.request
        if request.headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            raise Forbidden("Only pages of this server may read this.")
        sent = {
            name: request.headers.get(name.encode(), b"").decode("latin-1")
            for name in ("host", "last-event-id")
        }
        headers = {name: value for name, value in sent.items() if value}
        headers |= self._visitor(work).keys
        query = request.query.decode("latin-1")
        question = Question("GET", _RELAYED[work.path], query, headers, is_internal=True)
        return inside.relay(work, self._stack(), question)

    def _visitor(self, work: Work) -> Visitor:
        cookies, host = (
            work.request.headers.get(name, b"").decode("latin-1") for name in (b"cookie", b"host")
        )
        return self._sessions.visitor(cookies, host, _keys(work))


def _environ(work: Work) -> Any:
    """A request as WSGI has it."""
    request = work.request
    scope: Any = {  # a2wsgi declares ASGI's types again
        "type": "http",
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": work.path,
        "query_string": request.query,
        "root_path": work.prefix,
        "headers": request.headers.items(),
        "client": request.client,
    }
    body: Any = BytesIO(work.upload)
    environ: Any = build_environ(scope, body)
    environ["CONTENT_LENGTH"] = str(len(work.upload))
    return environ


def _keys(work: Work) -> dict[str, str]:
    """The keys that open the console of a sandbox, by their headers."""
    server, name = work.server, work.sandbox.name
    keys = {}
    if server.guard.admin_key is not None:
        keys[ADMIN_KEY] = server.guard.admin_key.decode()
    if server.sandboxes.find(name) is not None:
        keys[CONTROL_KEY] = server.sandboxes.control_key(name)
    return keys


def _permitted(path: str) -> Collection[tuple[str, str]]:
    """The controls that a page may call without a key: that of an operation the contract, of an
    order its own.
    """
    if not path.startswith(PAY):
        return {("GET", f"{CONTROL}/openapi.json")} if path.startswith(DOCS) else ()
    order = f"{CONTROL}/orders/{path[len(PAY) :].partition('/')[0]}"
    return {
        ("GET", f"{CONTROL}/clock"),
        ("GET", order),
        *(("POST", f"{order}/{move}") for move in MOVES),
    }


def _answer(app: WSGIApplication, environ: Any) -> Answer:
    """The whole answer of a WSGI application."""
    from werkzeug.test import run_wsgi_app  # imported for the first page, as Flask is

    parts, status, headers = run_wsgi_app(app, environ, buffered=True)
    body = b"".join(parts)
    encoded: Headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers
    ]
    return Answer(int(status[:3]), encoded, body)


def _to(path: str) -> Page:
    """Leads to another page of the sandbox."""

    async def answer(work: Work) -> Answer:
        return Answer(
            307, [(b"location", (work.prefix + path).encode()), (b"content-length", b"0")]
        )

    return answer


def console_pages(console: Console) -> dict[str, Page]:
    """The pages that are not below those of the guide, the API or the console."""
    paths = [
        "/",
        "/favicon.ico",
        DOCS,
        GUIDE,
        f"{GUIDE}.md",
        "/llms.txt",
        "/llms-full.txt",
    ]
    pages: dict[str, Page] = dict.fromkeys(paths, console.answer)
    moved = dict.fromkeys(("/console", "/console/"), _to("/console/requests"))
    return pages | moved | {f"{DOCS}/": _to(DOCS), f"{GUIDE}/": _to(GUIDE)}
