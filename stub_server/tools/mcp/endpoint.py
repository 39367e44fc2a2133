"""`/_sandbox/mcp`:

Streamable HTTP on every server. Tools ask the server itself, through every layer.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import sha256
from time import monotonic
from typing import Any

import orjson
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...contract.secrets import KEY_HEADERS
from ...core.problem import BadRequest, Refusal
from ...core.record import may_have_more_values
from ...server.layers import inside
from ...server.layers.access import with_bearer_key
from ...server.layers.inside import Question, Reply
from ...server.layers.validation import MOST_VALUES
from ...server.reply import Answer, Forwarded, not_allowed
from ...server.request import CONTROL_KEY, LARGEST_BODY, Request
from ...server.sandboxes.sandboxes import Sandboxes
from ...server.work import Work
from ...storage import sql
from .protocol import Context, server_of
from .session import Session

MOST_SESSIONS, MOST_OF_A_SANDBOX = 64, 8
IDLE = 30 * 60.0  # seconds after which a session ends that nobody uses
_FORGOTTEN = IDLE + 60.0  # seconds after its last answer, when it has surely ended
_VERSION, _SESSION = b"mcp-protocol-version", b"mcp-session-id"


class Endpoint:
    """One per server.

    It begins with the first request, in the loop of the server, and ends with that.
    """

    def __init__(self, app: Callable[[], ASGIApp]) -> None:
        """`app` returns the whole stack."""
        self._app = app
        self._sessions: dict[str, Session] = {}
        self._opening = asyncio.Lock()
        self._manager = StreamableHTTPSessionManager(
            server_of(self._session),
            json_response=True,
            session_idle_timeout=IDLE,
            max_sessions=MOST_SESSIONS,
            max_request_body_size=LARGEST_BODY,
        )
        self._has_begun = asyncio.Event()
        self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with self._manager.run():
            self._has_begun.set()
            await asyncio.Event().wait()

    async def answer(self, work: Work) -> Answer:
        """What the protocol answers.

        Raises a 405 for GET: nothing is sent that was not asked for; and BadRequest.
        """
        request = work.request
        if request.method not in ("POST", "DELETE"):
            raise not_allowed(request.method, "POST, DELETE")
        version = request.headers.get(_VERSION, b"").decode("latin-1")
        if version and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            # A sandbox of one's own hangs on a session, which newer versions do not have.
            raise BadRequest(
                "Use a version of the protocol with sessions:"
                f" {', '.join(HANDSHAKE_PROTOCOL_VERSIONS)}."
            )
        await self._has_begun.wait()
        return Forwarded(partial(self._pass, work, self._open(work)))

    async def _pass(
        self, work: Work, opened: Session, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Have the package answer a request."""
        request, sandboxes = work.request, work.server.sandboxes
        body, answers = [await _read(request, receive)], list[Message]()

        async def received() -> Message:
            if body:
                return {"type": "http.request", "body": bytes(body.pop())}
            return await receive()

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._remember(request.method, message, opened, sandboxes)
            if is_opened:
                await send(message)
            else:  # others would wait for a client that reads nothing
                answers.append(message)

        is_opened = _SESSION in request.headers
        handled = partial(self._handle, opened, scope, received, sent)
        if is_opened:
            await handled()
            return
        async with self._opening:  # one after the other, so that each finds those before it
            await self._make_room(sandboxes)
            self._check_room(opened)
            await handled()
        for message in answers:
            await send(message)

    async def _handle(self, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer those alone who have the key, and name the sandbox, that a session was
        opened with.
        """
        owner = sha256(orjson.dumps((session.opened_in, session.keys))).hexdigest()
        user = AuthenticatedUser(AccessToken(token=owner, client_id=owner, scopes=[]))
        await self._manager.handle_request({**scope, "user": user}, receive, send)

    async def _make_room(self, sandboxes: Sandboxes) -> None:
        """End the sessions in sandboxes that are gone, and those with the address or the key of one
        that was rotated, or made again, since they were used.
        """
        oldest = monotonic() - _FORGOTTEN
        for ident, each in list(self._sessions.items()):
            if each.used <= oldest:
                del self._sessions[ident]
            elif each.identity and await _has_ended(sandboxes, each):
                del self._sessions[ident]
                ended = Question("DELETE", "/", headers={"mcp-session-id": ident})
                await inside.ask(partial(self._handle, each), "", ended, None)

    def _check_room(self, opened: Session) -> None:
        """Raises a 503 for a further session of a sandbox that has its most."""
        full = self._why_full(opened, opened.sandbox)
        if full:
            raise Refusal(full, status=503, code="too_many_connections")

    def _why_full(self, session: Session, sandbox: str | None) -> str:
        """Why no further session may work in a sandbox: one control key must not take all."""
        others = [each for each in self._sessions.values() if each is not session]
        open_in = [each.sandbox for each in others].count(sandbox)
        if sandbox is None or open_in < MOST_OF_A_SANDBOX:
            return ""
        return (
            f"Agents have {open_in} sessions in the sandbox {sandbox}, the most at once. End one by"
            " DELETE, or wait: each ends after 30 minutes without a call."
        )

    def _remember(
        self, method: str, answer: Message, opened: Session, sandboxes: Sandboxes
    ) -> None:
        """Note that a session has answered, that one has begun, or that it has ended."""
        ident = dict(answer["headers"]).get(_SESSION, b"").decode("latin-1")
        if ident in self._sessions:
            session = self._sessions[ident]
            session.used, session.identity = monotonic(), _identity(sandboxes, session.sandbox)
        if not ident or answer["status"] >= 400:
            return
        if method == "DELETE":
            self._sessions.pop(ident, None)
        elif ident not in self._sessions:
            opened.used, opened.identity = monotonic(), _identity(sandboxes, opened.sandbox)
            self._sessions[ident] = opened

    def _open(self, work: Work) -> Session:
        """A session in the sandbox that a request names, or whose key it has; else in none yet."""
        client, headers = work.request.client, with_bearer_key(work.server, work.request.headers)
        keys = _named_in(headers, KEY_HEADERS)
        own = _named_in(headers, ("host", "origin"))  # the origin decides for webhooks

        async def ask(question: Question) -> Reply:
            length = str(len(question.body))
            sent = {**question.headers, **own, "content-length": length}
            return await inside.ask(self._app(), "", question._replace(headers=sent), client)

        session = Session(ask, keys, None)
        if work.prefix or b"x-sandbox" in headers or CONTROL_KEY in headers:
            session.sandbox = session.opened_in = work.sandbox.name
        session.why_full = partial(self._why_full, session)
        return session

    def _session(self, context: Context) -> Session:
        """The session of a request."""
        request: Any = context.request
        return self._sessions[request.headers["mcp-session-id"]]


def _identity(sandboxes: Sandboxes, name: str | None) -> str:
    """The identity of a sandbox, if it is in memory."""
    sandbox = None if name is None else sandboxes.find(name)
    return "" if sandbox is None else sandbox.identity


async def _has_ended(sandboxes: Sandboxes, session: Session) -> bool:
    """Whether the sandbox of a session is gone, or has other credentials than it was
    opened with.
    """
    name = str(session.sandbox)
    present = _identity(sandboxes, name)
    if present:
        return session.opened_in == name and present != session.identity
    if not sandboxes.persistence.has_store:
        return True
    return not await sandboxes.persistence.query(lambda database: sql.has(database, name))


def _named_in(headers: Mapping[bytes, bytes], names: Iterable[str]) -> dict[str, str]:
    """The headers of these names that a request has."""
    found = {}
    for name in names:
        value = headers.get(name.encode())
        if value is not None:
            found[name] = value.decode("latin-1")
    return found


async def _read(request: Request, receive: Receive) -> bytes | bytearray:
    """The whole body, before the package has to do with a client that leaves. Raises BadRequest,
    and a 413.

    The package, and tools, take each value in hand several times, and others wait.
    """
    body = await request.read(receive)
    if may_have_more_values(body, MOST_VALUES):
        message = f"The call has more than {MOST_VALUES:,} values, the most that a tool reads."
        raise Refusal(message, status=413, code="payload_too_large")
    return body
