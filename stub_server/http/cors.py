"""Cross-origin rules: any origin may call the API with a credential; the control surface answers local pages alone."""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from .errors import Headers

_EXPOSED = (
    b"access-control-expose-headers",
    b"X-Request-Id, Location, WWW-Authenticate, Retry-After, Idempotent-Replayed, X-Sandbox-Warnings, "
    b"X-Sandbox-Simulated, RateLimit, RateLimit-Policy, ETag",
)
_METHODS = (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
_COMMON = (
    b"Authorization, Content-Type, Accept, Idempotency-Key, Prefer, X-Sandbox, X-Sandbox-Admin-Key, "
    b"X-Sandbox-Client-IP, X-Sandbox-Simulate"
)
_VARY = (b"vary", b"Origin")


def answer_headers(origin: bytes) -> Headers:
    """What a browser on another port needs to read an answer, credentials included."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-credentials", b"true"),
        _EXPOSED,
        _VARY,
    ]


def preflight_headers(origin: bytes, requested: bytes | None) -> Headers:
    """The answer to a preflight: what was asked for is allowed, for ten minutes."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-credentials", b"true"),
        _METHODS,
        (b"access-control-allow-headers", requested or _COMMON),
        (b"access-control-max-age", b"600"),
        (b"vary", b"Origin, Access-Control-Request-Headers"),
        (b"content-length", b"0"),
    ]


def is_local(name: str | None) -> bool:
    """Whether a host name means this machine. A name such as `127.0.0.1.example.com` does not."""
    if name is None:
        return False
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def is_local_origin(origin: bytes) -> bool:
    """Whether a page's origin is on this machine (any port)."""
    try:
        return is_local(urlsplit(origin.decode("latin-1")).hostname)
    except ValueError:
        return False


def is_local_host(host: bytes | None) -> bool:
    """Whether a Host header names this machine: a name of the attacker's that resolves here does not."""
    if host is None:
        return True
    try:
        return is_local(urlsplit("//" + host.decode("latin-1")).hostname)
    except ValueError:
        return False


def is_from_elsewhere(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser sent this for a page that is not of this machine, by whatever it says of that."""
    origin = headers.get(b"origin")
    if origin is None and headers.get(b"sec-fetch-site") == b"cross-site":  # a picture or a script in a page
        return True
    return not is_local_host(headers.get(b"host")) or (origin is not None and not is_local_origin(origin))
