"""Pages: preflights, the keys of the control surface, and paths that are not operations: the
contract, the console, inboxes.
"""

import asyncio
from collections.abc import Callable, Mapping

import orjson

from ...core.clock import wall_ms
from ...core.problem import NotFound, Refusal
from ...engine.deliveries import INBOX
from ...webhooks.inbox import Message, is_name
from ..journal.entries import joined
from ..reply import Answer, Answering, not_allowed, options
from ..request import CONTROL
from ..work import Work
from .access import AGENTS, CONSOLE, OF_PREFLIGHTS, check_access, preflight
from .hosts import inbox_at
from .routing import DOCS
from .way import Layer, Way

_BODILESS = (204, 205, 304)
_BELOW = (*CONSOLE, "/guide/", f"{DOCS}/", "/static/", INBOX)
"""What paths begin with that are not listed."""
_LONGEST = 1_024  # characters of a page's path: each of its links has one `../` for each slash
MOST_FIELDS = 1_000  # of a form; of one with files werkzeug reads no more either
ALLOW = "GET, HEAD, OPTIONS"
ALLOW_FORMS = "GET, HEAD, POST, OPTIONS"
Page = Callable[[Work], Answering]
"""What a path answers. It raises refusals. The body of a form is the upload of its work."""


class Pages:
    """Answers preflights and paths that are not in the contract, none of which is in the journal,
    and refuses callers who may not use the control surface.
    """

    def __init__(
        self,
        app: Layer,
        *,
        pages: Mapping[str, Page],
        console: Page,
        most: Callable[[Work], int],
        agents: Page,
    ) -> None:
        """`console` answers pages that are not listed, below `CONSOLE` POST too. `most` is how many
        bytes are read.

        `agents` answers their tools.
        """
        self.app = app.__call__
        self._pages, self._console, self._agents = pages, console, agents
        self._most = most

    def __call__(self, way: Way) -> Answering:
        path = way.path
        if way.request.method == "OPTIONS" and way.headers.keys() >= OF_PREFLIGHTS:
            return preflight(way)
        if path.startswith("/v2/"):
            return self.app(way)
        if path.startswith(CONTROL):
            check_access(way)
        return self._answer(path, way)

    def _answer(self, path: str, way: Way) -> Answering:
        way.store = way.sandbox.store
        page = self._pages.get(path)
        if page is not None:
            return _show(page, way, ALLOW)
        if path == AGENTS:
            way.trace.is_kept = False
            return self._agents(way)
        if path.startswith(_BELOW):
            if not path.startswith(INBOX):
                return self._show_console(way)
            name = inbox_at(way.request.method, path)
            if name is not None:
                return _take_delivery(name, way)
        if _browses(way):
            return self._answer_browser(way)
        return self.app(way)

    async def _answer_browser(self, way: Way) -> Answer:
        """What the path answers, and a page where there is no such path."""
        try:
            return await self.app(way)
        except NotFound as error:
            if error.code != "route_not_found":
                raise
        return await self._show_console(way)

    async def _show_console(self, way: Way) -> Answer:
        if len(way.path) > _LONGEST:
            raise NotFound("There is no such page.", code="route_not_found")
        if not way.path.startswith(CONSOLE):
            return await _show(self._console, way, ALLOW)
        if way.request.method == "POST":
            way.trace.is_kept = False
            way.upload = await way.read(self._most(way))
            media = way.headers.get(b"content-type", b"").lower()
            is_plain = media.startswith(b"application/x-www-form-urlencoded")
            if is_plain and way.upload.count(b"&") >= MOST_FIELDS:
                raise Refusal(
                    f"The form has more than {MOST_FIELDS:,} fields, the most that is read.",
                    status=413,
                    code="payload_too_large",
                )
        return await _show(self._console, way, ALLOW_FORMS)


async def _take_delivery(name: str, way: Way) -> Answer:
    """Put a request into the inbox of this name. It has no operation: senders decide what they
    post.

    Raises NotFound.
    """
    if is_name(name) is None:
        raise NotFound(
            "The name of an inbox has 1 to 63 of the characters A-Z, a-z, 0-9, -, _ and ."
        )
    body = await way.read()
    check_access(way)  # its key may have ended meanwhile
    await way.create()
    sent = joined(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in way.request.sent
    )
    message = way.entry.inbox.receive(way.sandbox, name, sent, body, wall_ms())
    delay = message.answer.delay_ms
    if delay:
        with way.waiting():
            await asyncio.sleep(delay / 1000)
    return _answer_to(message)


def _answer_to(message: Message) -> Answer:
    """What an inbox answers to a message that it has received."""
    wanted, reason = message.answer, message.verdict.reason
    headers = {header["name"].lower(): header["value"] for header in wanted.headers}
    content = b""
    if wanted.status not in _BODILESS:
        content = orjson.dumps(
            {"received": message.number, "verified": reason is None, "reason": reason}
        )
        headers |= {"content-type": "application/json", "content-length": str(len(content))}
    return Answer(
        wanted.status, [(name.encode(), value.encode()) for name, value in headers.items()], content
    )


def _browses(way: Way) -> bool:
    """Whether a browser, which accepts pages, opens a path that is none of the API and the
    controls.
    """
    if way.request.method not in ("GET", "HEAD") or way.path.startswith(f"{CONTROL}/"):
        return False
    return b"text/html" in way.headers.get(b"accept", b"")


async def _show(page: Page, work: Work, allow: str) -> Answer:
    work.trace.is_kept = False
    method = work.request.method
    if method == "OPTIONS":
        return await options(allow)
    if method in allow.split(", "):
        return await page(work)
    raise not_allowed(method, allow)
