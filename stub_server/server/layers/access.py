"""Which pages may read answers, and who may use the control surface.

On loopback the credentials derive from the seed, so every web page could know them: only pages of
this machine, and of origins that the user names, may read responses. Elsewhere every origin may,
and the credential decides.
"""

import hmac
import re
from shlex import quote

from ...core.problem import Forbidden
from ...settings import Settings
from ..reply import Answer, Headers
from ..request import ADMIN_KEY, CONTROL, CONTROL_KEY, Named, is_local_origin
from ..server import Server
from ..work import Work
from .hosts import OPEN_CONTROL, inbox_at, is_local_host

AGENTS = f"{CONTROL}/mcp"
_ROTATION = re.compile(rf"{CONTROL}/sandboxes/([^/]+)/rotate").fullmatch
OF_PREFLIGHTS = {b"origin", b"access-control-request-method"}
"""Headers with which a browser asks what a page may send."""
# what pages of every origin may read
_READ_BY_ALL = OPEN_CONTROL | {"/openapi.json", "/openapi.yaml"}
_LONGEST_ORIGIN = 200
_PAGES = (
    "/_sandbox answers only pages of this machine. For one of another, start the server with"
    " --cors-origin."
)

# paths of pages that act begin so: only pages of the same origin may read them
CONSOLE = ("/console/", "/pay/")
_NOT_BY_CONTROL_KEY = frozenset(("sandboxes", "import", "metrics"))
_WITH_CREDENTIALS = (b"access-control-allow-credentials", b"true")
_EXPOSED = (
    b"access-control-expose-headers",
    (
        b"X-Request-Id, Location, WWW-Authenticate, Retry-After, Idempotent-Replayed,"
        b" X-Sandbox-Warnings, X-Sandbox-Simulated, X-Sandbox-Now, RateLimit, RateLimit-Policy,"
        b" ETag"
    ),
)
_METHODS = (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
_COMMON = (
    b"Authorization, Content-Type, Accept, Idempotency-Key, Prefer, X-Sandbox, X-Sandbox-Admin-Key,"
    b" X-Sandbox-Control-Key, X-Sandbox-Client-IP, X-Sandbox-Simulate, X-Sandbox-Delay"
)
VARY = (b"vary", b"Origin, Accept, Accept-Encoding")
"""On every response, with or without an Origin: a cache must not give one origin's response to
another, nor a page to a program that asks for Markdown, nor a packed contract to one that cannot
unpack it."""


def opens(path: str) -> bool:
    """Whether a control key is enough for a path: not for other sandboxes, imports, or addresses of
    no webhook.
    """
    subject = path.removeprefix(CONTROL).lstrip("/").partition("/")[0]
    return subject not in _NOT_BY_CONTROL_KEY or _rotated(path) is not None


def _rotated(path: str) -> str | None:
    """The sandbox that a path rotates, whose control key it takes."""
    found = _ROTATION(path)
    return None if found is None else found[1]


async def preflight(work: Work) -> Answer:
    """Answer what pages may send; whether this one may, `answer_headers` say.

    Raises Forbidden for a foreign page and the control surface.
    """
    headers, path = work.request.headers, work.path
    is_guarded = path.startswith(CONTROL) and path not in OPEN_CONTROL
    if is_guarded and not may_control(work.server.settings, headers[b"origin"]):
        raise _closed(_PAGES)
    work.trace.is_kept = False
    return Answer(
        204,
        [
            _METHODS,
            (
                b"access-control-allow-headers",
                headers.get(b"access-control-request-headers", _COMMON),
            ),
            (b"access-control-max-age", b"600"),
        ],
    )


def answer_headers(work: Work, origin: bytes) -> Headers:
    """The headers with which a browser lets a page of this origin read the answer, credentials
    included.

    There are none for a page that may not read it; the terminal shows how to allow that.
    """
    path = work.path
    if path.startswith(CONSOLE):
        return []
    may_read = may_control if path.startswith(CONTROL) else may_read_api
    if path in _READ_BY_ALL or may_read(work.server.settings, origin):
        return [(b"access-control-allow-origin", origin), _WITH_CREDENTIALS, _EXPOSED]
    shown = origin[:_LONGEST_ORIGIN].decode("latin-1").encode("unicode_escape").decode()
    work.trace.refused_origin = (
        f"origin {shown} was refused, --cors-origin {quote(shown)} allows it"
    )
    return []


def may_read_api(settings: Settings, origin: bytes) -> bool:
    """Whether a page of this origin may read what the API answers."""
    is_open = "*" in settings.cors_origins or not settings.loopback
    return is_open or may_control(settings, origin)


def may_control(settings: Settings, origin: bytes) -> bool:
    """Whether a page may use the control surface: one of this machine, or one that is named; `*`
    names none.

    A key is no reason: a browser may hold one for every page that its user opens.
    """
    if is_local_origin(origin):
        return True
    return origin.decode("latin-1").lower() in {
        each.rstrip("/").lower() for each in settings.cors_origins
    }


def check_access(work: Work) -> None:
    """Check a request to the control surface as `check_control`, unless a page may make it."""
    path = work.path
    if path.startswith(CONTROL) and (work.request.method, path) not in work.request.permitted:
        check_control(work, path, work.sandbox.name)


def check_control(work: Work, path: str, sandbox: str | None) -> None:
    """The control surface requires a key if the admin key is set, else a caller on this machine,
    and no other can call.

    `sandbox` is None if there is none of the name. On loopback an inbox takes deliveries from every
    process of this machine. Raises Forbidden, and Limited for wrong keys.
    """
    if path in OPEN_CONTROL:
        return
    server, headers = work.server, work.request.headers
    admin_key, for_others = server.guard.admin_key, server.settings.for_others
    if admin_key is None and for_others:
        raise _closed(
            "/_sandbox is closed, because other machines can reach this server. Start it with"
            " --admin-key."
        )
    # clients of tools, and scrapers of metrics, send a key as a bearer
    if path == AGENTS or (path == f"{CONTROL}/metrics" and admin_key is not None):
        headers = with_bearer_key(server, headers)
    if CONTROL_KEY in headers:
        _check_control_key(work, headers[CONTROL_KEY], path, sandbox)
        return
    is_delivery = inbox_at(work.request.method, path) is not None
    if admin_key is None or (is_delivery and not for_others):
        _check_page(server, headers)
    elif not server.guard.knows_admin(headers.get(ADMIN_KEY)):
        own = ", or the sandbox's own as X-Sandbox-Control-Key" if opens(path) else ""
        raise _closed(f"Send the server's admin key as X-Sandbox-Admin-Key{own}.")


def _check_control_key(work: Work, given: bytes, path: str, sandbox: str | None) -> None:
    """Raises Forbidden for the key of another sandbox, and where no control key is enough."""
    server, name = work.server, _rotated(path) or sandbox
    found = None if name is None else server.sandboxes.find(name)
    own = "" if found is None else server.sandboxes.control_key(found.name)
    if not own or not hmac.compare_digest(given, own.encode()):
        server.guard.count_wrong_key(work.request.peer)
        raise _closed("X-Sandbox-Control-Key is not the control key of this sandbox.")
    if not opens(path):
        raise _closed(
            "A control key is not enough here. Send the admin key as X-Sandbox-Admin-Key instead."
        )


def _check_page(server: Server, headers: Named) -> None:
    """Raises Forbidden for a page of another machine, unless the user has named its origin."""
    origin = headers.get(b"origin")
    is_named = origin is not None and may_control(server.settings, origin)
    if not is_local_host(headers.get(b"host")) or (is_from_elsewhere(headers) and not is_named):
        raise _closed(_PAGES)


def with_bearer_key(server: Server, headers: Named) -> Named:
    """Headers in which a bearer is the key that it is, the server's or a sandbox's: clients of
    tools send theirs so.
    """
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer" or ADMIN_KEY in headers:
        return headers
    key = token.strip()
    return {**headers, ADMIN_KEY if server.guard.knows_admin(key) else CONTROL_KEY: key}


def _closed(message: str) -> Forbidden:
    return Forbidden(message, code="admin_key_required")


def is_from_elsewhere(headers: Named) -> bool:
    """Whether a browser sent this for a page that is not of this machine, by Origin or
    Sec-Fetch-Site.
    """
    origin = headers.get(b"origin")
    if origin is None:  # an image or a script of a page has none
        return headers.get(b"sec-fetch-site") == b"cross-site"
    return not is_local_origin(origin)
