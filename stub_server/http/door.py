"""Who may use the control surface, and which pages may read what this server answers."""

from __future__ import annotations

from typing import NamedTuple

from ..calls.call import CONTROL, Call
from ..calls.server import Server
from ..kernel.problem import Forbidden
from . import cors
from .errors import Headers
from .inbox import inbox_at

OPEN_CONTROL = frozenset((f"{CONTROL}/health", f"{CONTROL}/qr.svg", f"{CONTROL}/qr.png"))
_PAGES = "The control surface answers pages of this machine alone. Start with --admin-key for others."


class Bodiless(NamedTuple):
    """An answer that the edge gives itself."""

    status: int
    headers: Headers


class Door:
    """One per server."""

    def __init__(self, server: Server, origins: cors.Origins) -> None:
        """`origins` are the pages that may read the API."""
        self._server, self._origins = server, origins

    def preflight(self, call: Call, origin: bytes) -> Bodiless:
        """What a browser that asks beforehand is told. Raises Forbidden for a foreign page and the control surface."""
        headers = call.headers
        guarded = call.path.startswith(CONTROL) and call.path not in OPEN_CONTROL
        if guarded and self._server.admin_key is None and not cors.is_local_origin(origin):
            raise _closed(_PAGES)
        if not guarded and call.path not in OPEN_CONTROL and not self._origins.may_read(origin):
            return Bodiless(204, [cors.VARY])  # nothing is allowed, and the browser keeps the page from it
        return Bodiless(204, cors.preflight_headers(origin, headers.get(b"access-control-request-headers")))

    def lets_read(self, call: Call, origin: bytes) -> bool:
        """Whether a page of this origin may read the answer."""
        if call.path in OPEN_CONTROL:
            return True
        if not call.path.startswith(CONTROL):
            return self._origins.may_read(origin)
        return cors.is_local_origin(origin) or b"x-sandbox-admin-key" in call.headers


def check_control(call: Call, path: str) -> None:
    """The control surface asks for the admin key where one is set, else for a caller on this machine.

    An inbox takes deliveries, on loopback from every process of this machine. Raises Forbidden.
    """
    if path in OPEN_CONTROL:
        return
    headers, server = call.headers, call.server
    is_inbox = inbox_at(call.method, path) is not None
    if server.admin_key is not None and not (is_inbox and server.loopback):
        if server.knows_admin(headers.get(b"x-sandbox-admin-key")):
            return
        raise _closed("Send the server's admin key as X-Sandbox-Admin-Key.")
    if not server.loopback:
        raise _closed("The control surface is closed: the server is reachable from outside and has no --admin-key.")
    if not cors.is_local_host(headers.get(b"host")) or cors.is_from_elsewhere(headers):
        raise _closed(_PAGES)


def _closed(message: str) -> Forbidden:
    return Forbidden(message, code="admin_key_required")
