"""`/_sandbox/mcp`:

Streamable HTTP on every server. Tools ask the server itself, through every layer.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...contract.secrets import KEY_HEADERS
from ...core.problem import BadRequest, NotFound, Refusal
from ...core.record import may_have_more_values
from ...server.layers import inside
from ...server.layers.access import with_bearer_key
from ...server.layers.inside import Question, Reply
from ...server.layers.way import Way
from ...server.reply import Answer, Forwarded, not_allowed
from ...server.request import CONTROL_KEY, LARGEST_BODY
from .session import Session
from .tools import Context, server_of

MOST_SESSIONS, MOST_OF_A_SANDBOX = 64, 8
MOST_VALUES = 5_000  # of a call: the package, and tools, take each in hand several times
IDLE = 30 * 60.0  # seconds after which a session ends that nobody uses
_VERSION, _IDENT = b"mcp-protocol-version", b"mcp-session-id"
_SESSION = "stub_server.session"  # where a request has it for the tools


class Endpoint:
    """One per server.

    It begins with the first request, in the loop of the server, and ends with that. The package
    answers each request by itself: in a session of the package, calls of one id get in each other's
    way and may never end. What a session is to a user is kept here.
    """

    def __init__(self, app: Callable[[], ASGIApp]) -> None:
        """`app` returns the whole stack."""
        self._app = app
        self._sessions: dict[str, Session] = {}  # the one longest unused first
        self._manager = StreamableHTTPSessionManager(
            server_of(_session),
            json_response=True,
            stateless=True,
            max_request_body_size=LARGEST_BODY,
        )
        self._has_begun = asyncio.Event()
        self._running = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with self._manager.run():
            self._has_begun.set()
            await asyncio.Event().wait()

    async def answer(self, work: Way) -> Answer:
        """What the protocol answers. A request without a session begins one.

        Raises a 405 for GET: nothing is sent that was not asked for; BadRequest, and NotFound.
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
        opened = self._open(work)
        ident = request.headers.get(_IDENT, b"").decode("latin-1")
        session = self._known(ident, opened) if ident else opened
        if request.method == "DELETE":
            self._sessions.pop(ident, None)
            return Answer(200, [])
        await self._has_begun.wait()
        return Forwarded(partial(self._pass, work, session))

    def _known(self, ident: str, opened: Session) -> Session:
        """A session that is open, for those alone who have the key, and name the sandbox, that it
        was opened with. Raises NotFound.
        """
        long_ago = asyncio.get_running_loop().time() - IDLE
        for each in [each for each, known in self._sessions.items() if known.used < long_ago]:
            del self._sessions[each]
        session = self._sessions.get(ident)
        if session is None or (session.opened_in, session.keys) != (opened.opened_in, opened.keys):
            raise NotFound(
                "There is no such session, or it has ended. Begin one: send initialize without"
                " Mcp-Session-Id.",
                code="session_not_found",
            )
        return session

    async def _pass(
        self, work: Way, session: Session, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Have the package answer a request, whose body is read before it has to do with a client
        that leaves. It takes several turns of the loop, so few calls are under way at once.

        Raises a 413, and Limited.
        """
        with work.server.waiting.take(work.sandbox.name, for_anybody=True):
            body = [await work.read()]
            if may_have_more_values(body[0], MOST_VALUES):
                raise Refusal(
                    f"The call has more than {MOST_VALUES:,} values, the most that a tool reads.",
                    status=413,
                    code="payload_too_large",
                )

            async def received() -> Message:
                if body:
                    return {"type": "http.request", "body": body.pop()}
                return await receive()

            async def sent(message: Message) -> None:
                if message["type"] == "http.response.start" and message["status"] < 400:
                    self._keep(session)
                    message["headers"].append((_IDENT, session.ident.encode()))
                await send(message)

            await self._manager.handle_request({**scope, _SESSION: session}, received, sent)

    def _keep(self, session: Session) -> None:
        """Note that a session is used. Those that were not used for longest end, to make room."""
        session.used = asyncio.get_running_loop().time()
        self._sessions.pop(session.ident, None)
        self._sessions[session.ident] = session
        for each in self._too_many(session.sandbox):
            del self._sessions[each]

    def _too_many(self, sandbox: str | None) -> list[str]:
        """The sessions beyond the most of a sandbox, or else beyond the most of the server."""
        if sandbox is not None:  # one control key must not take the place of others
            of_it = [ident for ident, each in self._sessions.items() if each.sandbox == sandbox]
            if len(of_it) > MOST_OF_A_SANDBOX:
                return of_it[:-MOST_OF_A_SANDBOX]
        return [*self._sessions][:-MOST_SESSIONS]

    def _open(self, work: Way) -> Session:
        """A session in the sandbox that a request names, or whose key it has; else in none yet."""
        client, headers = work.request.client, with_bearer_key(work.server, work.request.headers)
        keys = _named_in(headers, KEY_HEADERS)
        own = _named_in(headers, ("host", "origin"))  # the origin decides for webhooks

        async def ask(question: Question) -> Reply:
            sent = {**question.headers, **own, "content-length": str(len(question.body))}
            return await inside.ask(self._app(), "", question._replace(headers=sent), client)

        is_named = work.prefix or b"x-sandbox" in headers or CONTROL_KEY in headers
        return Session(ask, keys, work.sandbox.name if is_named else None)


def _session(context: Context) -> Session:
    """The session of a request."""
    request: Any = context.request
    session: Session = request.scope[_SESSION]
    return session


def _named_in(headers: Mapping[bytes, bytes], names: Iterable[str]) -> dict[str, str]:
    """The headers of these names that a request has."""
    sent = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
    return {name: sent[name] for name in names if name in sent}
