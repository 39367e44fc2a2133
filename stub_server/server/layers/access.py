"""HostPolicy, AccessPolicy, RateLimit: by which host names the server is called, which pages read its answers, who
may use the control surface, and how many requests a caller may send (`--rate-limit`).

With DNS rebinding, a foreign page whose host name resolves to this machine is same-origin with the server. Only the
Host header, which holds the foreign name, shows it.

On loopback the credentials derive from the seed, so every web page could know them: only pages of this machine, and of
origins that the user names, may read responses. Elsewhere every origin may, and the credential decides.
"""

import hmac
import re
from collections.abc import Awaitable, Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from math import ceil
from time import monotonic

from starlette.types import Receive, Scope, Send

from ...core.problem import BadRequest, Forbidden, Limited, NotBuilt, Refusal
from ...core.text import counted, host_name, is_local
from ...engine.deliveries import INBOX
from ...engine.journal import Trace
from ...settings import Settings
from ..request import ADMIN_KEY, CONTROL, CONTROL_KEY, Request, is_local_origin
from ..server import Server
from ..target import Target
from .answers import Answer, Headers, Layer, Pairs, Preflight
from .way import LIMITS, REQUEST, TARGET, TRACE

# Headers that decide what happens. Of two, this server and a proxy before it might each believe another one.
_ONCE = frozenset(
    (
        b"host", b"origin", b"authorization", b"content-type", b"transfer-encoding", b"idempotency-key",
        b"sec-fetch-site", b"webhook-id",
    )
)  # fmt: skip
METRICS = f"{CONTROL}/metrics"
OPEN_CONTROL = frozenset((f"{CONTROL}/health", f"{CONTROL}/ready", f"{CONTROL}/qr.svg", f"{CONTROL}/qr.png"))
"""Paths of the control surface that anyone may request, by any name of the host."""
DELIVERY = b"webhook-id"
_FOREIGN_HOST = "The Host header names another machine. Call the server by localhost or 127.0.0.1."
_ROTATION = re.compile(rf"{CONTROL}/sandboxes/([^/]+)/rotate").fullmatch
_PREFLIGHT = b"access-control-request-method"
_READ_BY_ALL = OPEN_CONTROL | {"/openapi.json", "/openapi.yaml"}  # what pages of every origin may read
_LONGEST_ORIGIN = 200
_PAGES = "/_sandbox answers only pages of this machine. For one of another, start the server with --cors-origin."

CONSOLE = ("/console/", "/pay/")  # paths of pages that act begin so: only pages of the same origin may read them
MOST_CALLERS = 10_000  # whose requests are counted
_NOT_BY_CONTROL_KEY = frozenset(("sandboxes", "import", "metrics"))
_WITH_CREDENTIALS = (b"access-control-allow-credentials", b"true")
_EXPOSED = (
    b"access-control-expose-headers",
    b"X-Request-Id, Location, WWW-Authenticate, Retry-After, Idempotent-Replayed, X-Sandbox-Warnings, "
    b"X-Sandbox-Simulated, X-Sandbox-Now, RateLimit, RateLimit-Policy, ETag",
)
_METHODS = (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
_COMMON = (
    b"Authorization, Content-Type, Accept, Idempotency-Key, Prefer, X-Sandbox, X-Sandbox-Admin-Key, "
    b"X-Sandbox-Control-Key, X-Sandbox-Client-IP, X-Sandbox-Simulate, X-Sandbox-Delay"
)
MOST_HEADERS = 100
MOST_QUERY_MEMBERS = 1_000
"""Bounds of a request that are checked before anything reads its headers and query one by one."""
VARY = (b"vary", b"Origin")
"""On every response, with or without an Origin: a cache must not give one origin's response to another."""


class Hosts:
    """The hosts that a server accepts: those of this machine and those that the user names."""

    def __init__(self, named: Iterable[str], *, loopback: bool) -> None:
        """`named` are as in a Host header. Off loopback every host is accepted: there the credential decides."""
        self._named = {host_name(text) for text in named} - {None}
        self._everyone = not loopback

    def admits(self, header: bytes | None) -> bool:
        """Whether a request with this Host header is accepted. Browsers always send the header."""
        return self._everyone or is_local_host(header) or host_name(_text(header)) in self._named


def _coding(headers: Mapping[bytes, bytes]) -> bytes:
    return headers[b"transfer-encoding"].strip().lower()


def _repeated(sent: Pairs) -> str | None:
    """The header that was sent more than once and must not be."""
    met = set[bytes]()
    for name, _ in sent:
        if name in met:
            return name.decode("latin-1").title()
        if name in _ONCE or name.startswith(b"x-sandbox"):
            met.add(name)
    return None


class HostPolicy:
    """Refuses requests of pages of other hosts, of too many parts, that proxies may read otherwise, and deliveries.

    It counts wrong admin keys before anybody else looks at one, since paths that need none may answer them otherwise.
    """

    def __init__(self, app: Layer, server: Server, hosts: Hosts) -> None:
        self.app, self._server, self._hosts = app, server, hosts

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[Answer]:
        """Raises a 431, a 414, BadRequest, NotBuilt, Forbidden and Limited."""
        request: Request = scope[REQUEST]
        headers = request.headers
        if len(request.sent) > MOST_HEADERS:
            message = f"The request has more than {MOST_HEADERS} headers, the most that is read."
            raise Refusal(message, status=431, code="headers_too_large")
        if request.query.count(b"&") >= MOST_QUERY_MEMBERS:
            message = f"The query has more than {MOST_QUERY_MEMBERS:,} members, the most that is read."
            raise Refusal(message, status=414, code="uri_too_long")
        host = headers.get(b"host")
        if host is None and scope["http_version"] == "1.1":
            raise BadRequest("The Host header is missing. HTTP/1.1 requires one.")
        if b"transfer-encoding" in headers and _coding(headers) not in (b"", b"chunked"):
            raise NotBuilt("Unknown transfer coding. Send Content-Length, or Transfer-Encoding: chunked.")
        prefix, path = "", request.path
        if path.startswith("/s/"):
            prefix, path = path[: path.find("/", 3)], path[path.find("/", 3) :]
        if b"upgrade" in headers and headers[b"upgrade"].lower() == b"websocket":
            stream = f"GET {prefix}{CONTROL}/stream sends events as they happen."
            message = f"WebSockets are not supported. Send a plain HTTP request. {stream}"
            raise BadRequest(message)
        repeated = None if len(headers) == len(request.sent) else _repeated(request.sent)
        if repeated is not None:
            raise BadRequest(f"The request has more than one {repeated} header. Send one.")
        given = headers.get(ADMIN_KEY)
        if given is not None and self._server.admin_key is not None and not self._server.knows_admin(given):
            count_wrong_key(self._server, request)
        if not self._hosts.admits(host) and path not in OPEN_CONTROL:
            raise Forbidden(_FOREIGN_HOST, code="host_not_allowed")
        # A webhook's delivery could change something here, or cause more deliveries.
        if DELIVERY in headers and inbox_at(request.method, path) is None:
            message = f"Webhook deliveries to this server are for inboxes only: /s/SANDBOX{CONTROL}/inbox/NAME."
            raise Forbidden(message, code="delivery_not_allowed")
        return self.app(scope, receive, send)


def inbox_at(method: str, path: str) -> str | None:
    """The name of the inbox that a request posts to; None for every other request. `path` has no prefix."""
    if method != "POST" or not path.startswith(INBOX):
        return None
    name = path[len(INBOX) :]
    return name if name and "/" not in name else None


def opens(path: str) -> bool:
    """Whether a control key is enough for a path: not for other sandboxes, imports, or addresses of no webhook."""
    if _rotated(path) is not None:
        return True
    return next(filter(None, path.removeprefix(CONTROL).split("/")), "") not in _NOT_BY_CONTROL_KEY


def _rotated(path: str) -> str | None:
    """The sandbox that a path rotates, whose control key it takes."""
    found = _ROTATION(path)
    return None if found is None else found[1]


class Origins:
    """The origins that may read the API's responses."""

    def __init__(self, listed: Iterable[str], *, loopback: bool) -> None:
        """`listed` are origins such as `https://app.example.com`; `*` is every one."""
        self._listed = frozenset(map(_origin, listed))
        self._everyone = b"*" in self._listed or not loopback

    def may_read(self, origin: bytes) -> bool:
        return self._everyone or origin.lower() in self._listed or is_local_origin(origin)


class AccessPolicy:
    """Answers preflights, and refuses callers who may not use the control surface."""

    def __init__(self, app: Layer, server: Server, origins: Origins) -> None:
        self.app, self._server, self._origins = app, server, origins

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[Answer]:
        request: Request = scope[REQUEST]
        target: Target = scope[TARGET]
        if request.method == "OPTIONS" and b"origin" in request.headers and _PREFLIGHT in request.headers:
            return self._preflight(scope, request, target.path)
        if target.path.startswith(CONTROL) and (request.method, target.path) not in request.permitted:
            check_control(self._server, request, target.path, target.sandbox.name)
        return self.app(scope, receive, send)

    async def _preflight(self, scope: Scope, request: Request, path: str) -> Answer:
        """Answer what a page may send. Raises Forbidden for a foreign page and the control surface."""
        trace, origin = scope[TRACE], request.headers[b"origin"]
        guarded = path.startswith(CONTROL) and path not in OPEN_CONTROL
        if guarded and not may_control(self._server.settings, origin):
            trace.refused_origin = _refused(origin)
            raise _closed(_PAGES)
        allowed: Headers = [VARY]  # allows nothing: the browser does not send the request
        is_closed = path.startswith(CONSOLE) or not self._origins.may_read(origin)
        if not guarded and path not in _READ_BY_ALL and is_closed:
            trace.refused_origin = _refused(origin)
        else:
            allowed = [
                (b"access-control-allow-origin", origin),
                _WITH_CREDENTIALS,
                _METHODS,
                (b"access-control-allow-headers", request.headers.get(b"access-control-request-headers", _COMMON)),
                (b"access-control-max-age", b"600"),
                (b"vary", b"Origin, Access-Control-Request-Headers"),
                (b"content-length", b"0"),
            ]
        trace.is_kept = False
        return Preflight(204, allowed)


def answer_headers(server: Server, path: str, origin: bytes, origins: Origins, trace: Trace) -> Headers:
    """The headers with which a browser lets a page of this origin read the answer, credentials included.

    There are none for a page that may not read it; the terminal shows how to allow that. `path` is that in the sandbox.
    """
    if path not in _READ_BY_ALL:
        if path.startswith(CONSOLE):
            return []
        is_control = path.startswith(CONTROL)
        if not (may_control(server.settings, origin) if is_control else origins.may_read(origin)):
            trace.refused_origin = _refused(origin)
            return []
    return [(b"access-control-allow-origin", origin), _WITH_CREDENTIALS, _EXPOSED]


def may_control(settings: Settings, origin: bytes) -> bool:
    """Whether a page may use the control surface: one of this machine, or one that is named; `*` names none.

    A key is no reason: a browser may hold one for every page that its user opens.
    """
    if is_local_origin(origin):
        return True
    return origin.lower() in {_origin(named) for named in settings.cors_origins}


def _origin(named: str) -> bytes:
    return named.rstrip("/").lower().encode()


def _refused(origin: bytes) -> str:
    """What the terminal shows of an origin that may not read an answer."""
    shown = origin[:_LONGEST_ORIGIN].decode("latin-1").encode("unicode_escape").decode()
    return f"origin {shown} was refused, --cors-origin {shown} allows it"


def check_control(server: Server, request: Request, path: str, sandbox: str | None) -> None:
    """The control surface requires a key if the admin key is set, else a caller on this machine, and no other can call.

    `sandbox` is None if there is none of the name. On loopback an inbox takes deliveries from every process of this
    machine. Raises Forbidden, BadRequest for two keys, and Limited for wrong ones.
    """
    if path in OPEN_CONTROL:
        return
    headers = request.headers
    if server.admin_key is None and not server.settings.loopback:
        raise _closed("/_sandbox is closed, because other machines can reach this server. Start it with --admin-key.")
    control_key = headers.get(CONTROL_KEY)
    if control_key is not None:
        if ADMIN_KEY in headers:
            raise BadRequest("Send X-Sandbox-Control-Key or X-Sandbox-Admin-Key, not both.")
        named = _rotated(path) or sandbox
        found = None if named is None else server.sandboxes.find(named)
        own = "" if found is None else server.sandboxes.control_key(found.name)
        if not (own and hmac.compare_digest(control_key, own.encode())):
            count_wrong_key(server, request)
            raise _closed("X-Sandbox-Control-Key is not the control key of this sandbox.")
        if not opens(path):
            raise _closed("A control key is not enough here. Send the server's admin key as X-Sandbox-Admin-Key.")
        return
    is_inbox = inbox_at(request.method, path) is not None
    if server.admin_key is not None and not (is_inbox and server.settings.loopback):
        if server.knows_admin(headers.get(ADMIN_KEY)):
            return
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if path == METRICS and scheme.lower() == b"bearer":  # for scrapers
            if server.knows_admin(token.strip()):
                return
            count_wrong_key(server, request)
        own = ", or the sandbox's own as X-Sandbox-Control-Key" if opens(path) else ""
        raise _closed(f"Send the server's admin key as X-Sandbox-Admin-Key{own}.")
    origin = headers.get(b"origin")
    is_named = origin is not None and may_control(server.settings, origin)
    if not is_local_host(headers.get(b"host")) or (is_from_elsewhere(headers) and not is_named):
        raise _closed(_PAGES)


def count_wrong_key(server: Server, request: Request) -> None:
    """Count a wrong admin or control key of an address on a public server; elsewhere they follow from the seed.

    Raises Limited after ten in a minute.
    """
    if not server.settings.is_public:
        return
    guesses, address = server.guesses, request.peer or ""
    wait = ceil(guesses.wait_of(address))
    if wait:
        message = f"Too many wrong keys from this address: wait {counted(wait, 'second')}. The right one works at once."
        raise Limited(message, headers={"Retry-After": str(wait)})
    guesses.count(address)


def _closed(message: str) -> Forbidden:
    return Forbidden(message, code="admin_key_required")


@lru_cache(maxsize=64)
def is_local_host(host: bytes | None) -> bool:
    """Whether a Host header names this machine. Another name that resolves to it does not."""
    return host is None or is_local(host_name(_text(host)))


def _text(header: bytes | None) -> str:
    return (header or b"").decode("latin-1").strip()


def is_from_elsewhere(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser sent this for a page that is not of this machine, by Origin or Sec-Fetch-Site."""
    origin = headers.get(b"origin")
    if origin is None:  # an image or a script of a page has none
        return headers.get(b"sec-fetch-site") == b"cross-site"
    return not is_local_origin(origin)


class RateLimit:
    """A caller is a credential, or an address without one, in one sandbox. The control surface has no limit."""

    def __init__(self, app: Layer, rule: tuple[int, int]) -> None:
        """`rule` is a number of requests and of seconds: a window begins with a caller's first request."""
        most, seconds = rule
        self.app, self.most, self.seconds = app, most, seconds
        self._policy = f'"default";q={most};w={seconds}'
        self._windows: dict[bytes, tuple[float, int]] = {}  # when a window ends, and the requests in it

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[Answer]:
        request: Request = scope[REQUEST]
        target: Target = scope[TARGET]
        if not target.path.startswith(CONTROL) and not request.is_internal:
            scope[LIMITS] = self.take(target.sandbox.name, request.headers.get(b"authorization"), request.peer)
        return self.app(scope, receive, send)

    def take(self, sandbox: str, authorization: bytes | None, peer: str | None) -> Headers:
        """Count a request and return the RateLimit headers. Raises Limited, with these and Retry-After."""
        now = monotonic()
        # Neither the case of the scheme nor blanks after it make another caller.
        credential = (authorization or b"").partition(b" ")[2].strip() or str(peer).encode()
        caller = blake2b(credential, digest_size=16, key=sandbox.encode()[:64]).digest()
        ends, used = self._windows.pop(caller, (0.0, 0))
        if ends <= now:
            ends, used = now + self.seconds, 0
        is_over = used >= self.most
        used += not is_over
        self._windows[caller] = ends, used  # moved to the end: the caller that has been idle longest is first
        if len(self._windows) > MOST_CALLERS:
            del self._windows[next(iter(self._windows))]
        left, seconds = self.most - used, ceil(ends - now)
        headers = {"RateLimit-Policy": self._policy, "RateLimit": f'"default";r={left};t={seconds}'}
        if is_over:
            message = (
                f"More than {counted(self.most, 'request')} in {counted(self.seconds, 'second')}: "
                f"wait {counted(seconds, 'second')}."
            )
            raise Limited(message, headers={**headers, "Retry-After": str(seconds)})
        return [(name.lower().encode(), value.encode()) for name, value in headers.items()]
