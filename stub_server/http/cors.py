"""CORS: which origins may read the API's responses, and which those of the control surface.

On loopback the credentials derive from the seed, so every web page could know them: only pages of this machine, and of
origins that the user names, may read responses. Elsewhere every origin may, and the credential decides.
"""

import re
from collections.abc import Iterable, Mapping

from ..kernel.hosts import is_local
from .errors import Headers
from .hosts import host_name

_EXPOSED = (
    b"access-control-expose-headers",
    b"X-Request-Id, Location, WWW-Authenticate, Retry-After, Idempotent-Replayed, X-Sandbox-Warnings, "
    b"X-Sandbox-Simulated, RateLimit, RateLimit-Policy, ETag",
)
_METHODS = (b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
_COMMON = (
    b"Authorization, Content-Type, Accept, Idempotency-Key, Prefer, X-Sandbox, X-Sandbox-Admin-Key, "
    b"X-Sandbox-Control-Key, "
    b"X-Sandbox-Client-IP, X-Sandbox-Simulate, X-Sandbox-Delay"
)
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(.+)").fullmatch
VARY = (b"vary", b"Origin")
"""On every response, with or without an Origin: a cache must not give one origin's response to another."""


class Origins:
    """The origins that may read the API's responses."""

    def __init__(self, listed: Iterable[str], *, loopback: bool) -> None:
        """`listed` are origins such as `https://app.example.com`; `*` is every one."""
        self._listed = frozenset(origin.rstrip("/").lower().encode() for origin in listed)
        self._everyone = b"*" in self._listed or not loopback

    def may_read(self, origin: bytes) -> bool:
        """Whether a page of this origin may read the API."""
        return self._everyone or origin.lower() in self._listed or is_local_origin(origin)


def answer_headers(origin: bytes) -> Headers:
    """The headers with which a browser lets a page of this origin read a response, credentials included."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-credentials", b"true"),
        _EXPOSED,
    ]


def preflight_headers(origin: bytes, requested: bytes | None) -> Headers:
    """The headers of a preflight's response: the requested headers are allowed, for ten minutes."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-credentials", b"true"),
        _METHODS,
        (b"access-control-allow-headers", requested or _COMMON),
        (b"access-control-max-age", b"600"),
        (b"vary", b"Origin, Access-Control-Request-Headers"),
        (b"content-length", b"0"),
    ]


def is_local_origin(origin: bytes) -> bool:
    """Whether a page's origin is on this machine: any port, any scheme, for apps in a shell have one of their own."""
    found = _ORIGIN(origin.decode("latin-1"))
    return found is not None and is_local(host_name(found[1]))


def is_local_host(host: bytes | None) -> bool:
    """Whether a Host header names this machine. Another name that resolves to it does not."""
    if host is None:
        return True
    return is_local(host_name(host.decode("latin-1").strip()))


def is_from_elsewhere(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser sent this for a page that is not of this machine, by Origin or Sec-Fetch-Site."""
    origin = headers.get(b"origin")
    if origin is None and headers.get(b"sec-fetch-site") == b"cross-site":  # such as an image or a script of a page
        return True
    return origin is not None and not is_local_origin(origin)
