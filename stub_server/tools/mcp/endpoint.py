"""`/_sandbox/mcp`:

Streamable HTTP on every server. Tools ask the server itself, through every layer.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import sha256
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
from ...server.request import CONTROL_KEY, LARGEST_BODY
from ...server.work import Work
from .session import Session
from .tools import Context, server_of

MOST_SESSIONS, MOST_OF_A_SANDBOX = 64, 8
IDLE = 30 * 60.0  # seconds after which a session ends that nobody uses
_VERSION, _SESSION = b"mcp-protocol-version", b"mcp-session-id"


class Endpoint:
    """One per server.

    It begins with the first request, in the loop of the server, and ends with that.
    """

    def __init__(self, app: Callable[[], ASGIApp]) -> None:
        """`app` returns the whole stack."""
        self._app = app
        self._sessions: dict[str, Session] = {}  # the one longest unused first
        self._under_way: set[tuple[bytes, str]] = set()  # session and id of each call
        self._manager = StreamableHTTPSessionManager(
            server_of(self._session),
            json_response=True,
            session_idle_timeout=IDLE,
            max_sessions=None,  # at the limit the one longest unused ends
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
        return Forwarded(partial(self._pass, work))

    async def _pass(self, work: Work, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the package answer a request, whose body is read before it has to do with a client
        that leaves.

        Raises BadRequest, and a 413.
        """
        opened, body = self._open(work), [await work.request.read(receive)]
        # the package, and tools, take each value in hand several times, and others wait
        if may_have_more_values(body[0], MOST_VALUES):
            raise Refusal(
                f"The call has more than {MOST_VALUES:,} values, the most that a tool reads.",
                status=413,
                code="payload_too_large",
            )

        async def received() -> Message:
            if body:
                return {"type": "http.request", "body": bytes(body.pop())}
            return await receive()

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                ident = dict(message["headers"]).get(_SESSION, b"").decode("latin-1")
                await self._note_use(ident, opened, has_ended=work.request.method == "DELETE")
            await send(message)

        call = work.request.headers.get(_SESSION, b""), _id_of(body[0])
        if call in self._under_way:  # the package would never end the earlier one
            raise BadRequest("A call with this id is under way. Give each call an id of its own.")
        if all(call):
            self._under_way.add(call)
        try:
            await self._handle(opened, scope, received, sent)
        finally:
            self._under_way.discard(call)

    async def _handle(self, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer those alone who have the key, and name the sandbox, that a session was
        opened with.
        """
        owner = sha256(orjson.dumps((session.opened_in, session.keys))).hexdigest()
        user = AuthenticatedUser(AccessToken(token=owner, client_id=owner, scopes=[]))
        await self._manager.handle_request({**scope, "user": user}, receive, send)

    async def _note_use(self, ident: str, opened: Session, *, has_ended: bool) -> None:
        """Note that a session has answered, that one has begun, or that it has ended.

        Those that were not used for longest end, to make room.
        """
        session = self._sessions.pop(ident, opened)
        if not ident or has_ended:
            return
        self._sessions[ident] = session
        for each in self._too_many(session.sandbox):
            owner = self._sessions.pop(each, None)
            if owner is not None:
                await inside.ask(
                    partial(self._handle, owner),
                    "",
                    Question("DELETE", "/", headers={"mcp-session-id": each}),
                    None,
                )

    def _too_many(self, sandbox: str | None) -> list[str]:
        """The sessions beyond the most of a sandbox, or else beyond the most of the server."""
        if sandbox is not None:  # one control key must not take the place of others
            of_it = [ident for ident, each in self._sessions.items() if each.sandbox == sandbox]
            if len(of_it) > MOST_OF_A_SANDBOX:
                return of_it[:-MOST_OF_A_SANDBOX]
        return [*self._sessions][:-MOST_SESSIONS]

    def _open(self, work: Work) -> Session:
        """A session in the sandbox that a request names, or whose key it has; else in none yet."""
        client, headers = work.request.client, with_bearer_key(work.server, work.request.headers)
        keys = _named_in(headers, KEY_HEADERS)
        own = _named_in(headers, ("host", "origin"))  # the origin decides for webhooks

        async def ask(question: Question) -> Reply:
            sent = {**question.headers, **own, "content-length": str(len(question.body))}
            return await inside.ask(self._app(), "", question._replace(headers=sent), client)

        is_named = work.prefix or b"x-sandbox" in headers or CONTROL_KEY in headers
        return Session(ask, keys, work.sandbox.name if is_named else None)

    def _session(self, context: Context) -> Session:
        """The session of a request."""
        request: Any = context.request
        return self._sessions[request.headers["mcp-session-id"]]


def _id_of(body: bytes | bytearray) -> str:
    """The id of a call, for which the package takes 5 and "5" alike; empty where there is none."""
    try:
        call = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    return str(call.get("id", "")) if isinstance(call, dict) else ""


def _named_in(headers: Mapping[bytes, bytes], names: Iterable[str]) -> dict[str, str]:
    """The headers of these names that a request has."""
    sent = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
    return {name: sent[name] for name in names if name in sent}
