"""Who may use the control surface, and which pages may read what this server answers."""

from __future__ import annotations

import hmac
from typing import NamedTuple

from ..calls.call import CONTROL, Call
from ..calls.server import Server
from ..kernel.problem import Forbidden, Malformed
from . import cors
from .errors import Headers
from .inbox import inbox_at

OPEN_CONTROL = frozenset((f"{CONTROL}/health", f"{CONTROL}/ready", f"{CONTROL}/qr.svg", f"{CONTROL}/qr.png"))
_READ_BY_ALL = OPEN_CONTROL | {"/openapi.json", "/openapi.yaml"}
"""What pages of every origin may read."""
_LONGEST_ORIGIN = 200
_PAGES = "The control surface answers pages of this machine alone. Start with --admin-key for others."


CONTROL_KEY = b"x-sandbox-control-key"
_KEYS = frozenset((b"x-sandbox-admin-key", CONTROL_KEY))
_NOT_BY_CONTROL_KEY = frozenset(("sandboxes", "import", "certify"))


def opens(path: str) -> bool:
    """Whether a control key opens this: not other sandboxes, files of others, and addresses that no webhook has."""
    return next(filter(None, path.removeprefix(CONTROL).split("/")), "") not in _NOT_BY_CONTROL_KEY


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
            call.trace.refused_origin = _refused(origin, "--admin-key")
            raise _closed(_PAGES)
        if not guarded and call.path not in _READ_BY_ALL and not self._origins.may_read(origin):
            call.trace.refused_origin = _refused(origin, "--cors-origin")
            return Bodiless(204, [cors.VARY])  # nothing is allowed, and the browser keeps the page from it
        return Bodiless(204, cors.preflight_headers(origin, headers.get(b"access-control-request-headers")))

    def lets_read(self, call: Call, origin: bytes) -> bool:
        """Whether a page of this origin may read the answer. Where it may not, the terminal's line says so."""
        if call.path in _READ_BY_ALL:
            return True
        is_control = call.path.startswith(CONTROL)
        if is_control:
            may = cors.is_local_origin(origin) or not _KEYS.isdisjoint(call.headers)
        else:
            may = self._origins.may_read(origin)
        if not may:
            call.trace.refused_origin = _refused(origin, "--admin-key" if is_control else "--cors-origin")
        return may


def _refused(origin: bytes, flag: str) -> str:
    """What the terminal says of an origin that may not read an answer."""
    shown = origin[:_LONGEST_ORIGIN].decode("latin-1").encode("unicode_escape").decode()
    return f"origin {shown} was refused, {flag} {'KEY' if flag == '--admin-key' else shown} allows it"


def check_control(call: Call, path: str, sandbox: str | None) -> None:
    """The control surface asks for a key where the admin's is set, else for a caller on this machine.

    `sandbox` is the one that is asked, None if there is none of the name. An inbox takes deliveries, on loopback from
    every process of this machine. Raises Forbidden, and Malformed for two keys.
    """
    if path in OPEN_CONTROL:
        return
    headers, server = call.headers, call.server
    control_key = headers.get(CONTROL_KEY)
    if control_key is not None:
        if b"x-sandbox-admin-key" in headers:
            raise Malformed("Send X-Sandbox-Control-Key or X-Sandbox-Admin-Key, not both.", code="malformed_request")
        own = "" if sandbox is None else server.sandboxes.control_key(sandbox)
        if not (own and hmac.compare_digest(control_key, own.encode())):
            raise _closed("This X-Sandbox-Control-Key does not open the controls of this sandbox.")
        if not opens(path):
            raise _closed("A control key does not open this. Send the server's admin key as X-Sandbox-Admin-Key.")
        return
    is_inbox = inbox_at(call.method, path) is not None
    if server.admin_key is not None and not (is_inbox and server.loopback):
        if server.knows_admin(headers.get(b"x-sandbox-admin-key")):
            return
        own = ", or the sandbox's own as X-Sandbox-Control-Key" if opens(path) else ""
        raise _closed(f"Send the server's admin key as X-Sandbox-Admin-Key{own}.")
    if not server.loopback:
        raise _closed("The control surface is closed: the server is reachable from outside and has no --admin-key.")
    if not cors.is_local_host(headers.get(b"host")) or cors.is_from_elsewhere(headers):
        raise _closed(_PAGES)


def _closed(message: str) -> Forbidden:
    return Forbidden(message, code="admin_key_required")
