"""HostPolicy: by which host names the server is called, and what no proxy before it may read in
another way.

With DNS rebinding, a foreign page whose host name resolves to this machine is same-origin with the
server. Only the Host header, which holds the foreign name, shows it.
"""

from collections.abc import Callable
from functools import lru_cache

from ...core.problem import BadRequest, Forbidden, NotBuilt, Refusal
from ...core.text import host_name, is_local
from ...engine.deliveries import INBOX
from ...settings import Settings
from ..reply import Answering
from ..request import ADMIN_KEY, CONTROL
from .way import Layer, Way

# Headers that decide what happens. Of two, this server and a proxy before it might each believe
# another one.
_ONCE = frozenset(
    (
        b"host",
        b"origin",
        b"authorization",
        b"content-type",
        b"transfer-encoding",
        b"idempotency-key",
        b"sec-fetch-site",
        b"webhook-id",
    )
)
OPEN_CONTROL = frozenset(
    (f"{CONTROL}/health", f"{CONTROL}/ready", f"{CONTROL}/qr.svg", f"{CONTROL}/qr.png")
)
"""Paths of the control surface that anyone may request, by any name of the host."""
DELIVERY = b"webhook-id"
_LOOKED_AT = frozenset((ADMIN_KEY, DELIVERY, b"transfer-encoding", b"upgrade"))
MOST_HEADERS = 100
MOST_QUERY_MEMBERS = 1_000
"""Bounds of a request that are checked before anything reads its headers and query one by one."""


Hosts = Callable[[bytes | None], bool]
"""Whether a request with a Host header is accepted. Browsers always send the header."""


def hosts_of(settings: Settings) -> Hosts:
    """The hosts that a server accepts: those of this machine and those that the user names.

    Off loopback every host is accepted: there the credential decides.
    """
    named = {host_name(text) for text in settings.allow_hosts} - {None}

    @lru_cache(maxsize=64)
    def admits(header: bytes | None) -> bool:
        return not settings.loopback or is_local_host(header) or host_name(_text(header)) in named

    return admits


class HostPolicy:
    """Refuses requests of pages of other hosts, of too many parts, that proxies may read otherwise,
    and deliveries.

    It counts wrong admin keys before anybody else looks at one, since paths that need none may
    answer them otherwise.
    """

    def __init__(self, app: Layer, hosts: Hosts) -> None:
        self.app, self._admits = app.__call__, hosts

    def __call__(self, way: Way) -> Answering:
        """Raises a 431, a 414, BadRequest, NotBuilt, Forbidden and Limited."""
        request, headers = way.request, way.headers
        if len(request.sent) > MOST_HEADERS:
            raise Refusal(
                f"The request has more than {MOST_HEADERS} headers, the most that is read.",
                status=431,
                code="headers_too_large",
            )
        if request.query.count(b"&") >= MOST_QUERY_MEMBERS:
            raise Refusal(
                f"The query has more than {MOST_QUERY_MEMBERS:,} members, the most that is read.",
                status=414,
                code="uri_too_long",
            )
        if way.scope["http_version"] == "1.1" and b"host" not in headers:
            raise BadRequest("The Host header is missing. HTTP/1.1 requires one.")
        if len(headers) != len(request.sent) or not _LOOKED_AT.isdisjoint(headers):
            _check_headers(way)
        if not self._admits(headers.get(b"host")) and way.path not in OPEN_CONTROL:
            raise Forbidden(
                "The Host header names another machine. Call the server by localhost or 127.0.0.1.",
                code="host_not_allowed",
            )
        return self.app(way)


def _check_headers(way: Way) -> None:
    """Raises BadRequest and NotBuilt for what proxies may read otherwise, Limited for a wrong
    admin key, and Forbidden for a delivery.
    """
    request, headers = way.request, way.headers
    names = [name for name, _ in request.sent]
    for name in names:
        if (name in _ONCE or name.startswith(b"x-sandbox")) and names.count(name) > 1:
            repeated = name.decode("latin-1").title()
            raise BadRequest(f"The request has more than one {repeated} header. Send one.")
    if headers.get(b"transfer-encoding", b"").strip().lower() not in (b"", b"chunked"):
        raise NotBuilt(
            "Unknown transfer coding. Send Content-Length, or Transfer-Encoding: chunked."
        )
    if headers.get(b"upgrade", b"").lower() == b"websocket":
        raise BadRequest(
            "WebSockets are not supported. Send a plain HTTP request."
            f" GET {way.prefix}{CONTROL}/stream sends events as they happen."
        )
    given, guard = headers.get(ADMIN_KEY), way.server.guard
    if given is not None and guard.admin_key is not None and not guard.knows_admin(given):
        guard.count_wrong_key(request.peer)
    # A webhook's delivery could change something here, or cause more deliveries.
    if DELIVERY in headers and inbox_at(request.method, way.path) is None:
        raise Forbidden(
            "Webhook deliveries to this server are for inboxes only:"
            f" /s/SANDBOX{CONTROL}/inbox/NAME.",
            code="delivery_not_allowed",
        )


def inbox_at(method: str, path: str) -> str | None:
    """The name of the inbox that a request posts to; None for every other request.

    `path` has no prefix.
    """
    if method != "POST" or not path.startswith(INBOX):
        return None
    name = path[len(INBOX) :]
    return name if name and "/" not in name else None


def is_local_host(host: bytes | None) -> bool:
    """Whether a Host header names this machine. Another name that resolves to it does not."""
    return host is None or is_local(host_name(_text(host)))


def _text(header: bytes | None) -> str:
    return (header or b"").decode("latin-1").strip()
