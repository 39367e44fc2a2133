"""HostPolicy: which Host headers are accepted, and which headers no request may have.

With DNS rebinding, a foreign page whose host name resolves to this machine is same-origin with the server. Only the
Host header, which holds the foreign name, shows it.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv6Address
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, CONTROL, Call
from ..engine.deliveries import INBOX
from ..kernel.hosts import is_local
from ..kernel.problem import Forbidden, Malformed, NotBuilt

OPEN_CONTROL = frozenset((f"{CONTROL}/health", f"{CONTROL}/ready", f"{CONTROL}/qr.svg", f"{CONTROL}/qr.png"))
"""Paths of the control surface that everybody may ask for, by whatever name of the host."""
DELIVERY = b"webhook-id"
_FOREIGN_HOST = (
    "The Host header names another machine. Call the server by localhost or 127.0.0.1, or start it with --allow-host."
)
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{0,5})?").fullmatch
_REMEMBERED, _LONGEST = 64, 256


def host_name(header: str) -> str | None:
    """The name or address in a Host header, in lower case and without the port; None for any other text."""
    found = _HOST(header)
    if found is None:
        return None
    literal, name = found.groups()
    if literal is None:
        return str(name).lower().removesuffix(".") or None
    try:
        return str(IPv6Address(literal))
    except ValueError:
        return None


class Hosts:
    """The hosts that a server accepts: those of this machine and those that the user names."""

    def __init__(self, named: Iterable[str], *, loopback: bool) -> None:
        """`named` are as in a Host header. Off loopback every host is accepted: there the credential decides."""
        self._named = {host_name(text) for text in named} - {None}
        self._everyone = not loopback
        self._known: set[bytes | None] = {None}  # browsers always send the header

    def admits(self, header: bytes | None) -> bool:
        """Whether a request with this Host header is accepted."""
        if self._everyone or header in self._known:
            return True
        assert header is not None
        name = host_name(header.decode("latin-1").strip())
        if not is_local(name) and name not in self._named:
            return False
        if len(self._known) < _REMEMBERED and len(header) < _LONGEST:
            self._known.add(header)
        return True


class HostPolicy:
    """Refuses what another host's page, another proxy's reading or a webhook's delivery may have sent."""

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self.app, self._hosts = app, hosts

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call: Call = scope[CALL]
        if not call.head.is_ordinary:
            self._check(call, scope["http_version"])
        return self.app(scope, receive, send)

    def _check(self, call: Call, version: str) -> None:
        """Raises Malformed, NotBuilt and Forbidden."""
        head = call.head
        if not head.has_host and version == "1.1":
            raise Malformed("An HTTP/1.1 request has a Host header.", code="malformed_request")
        if head.coding:
            raise NotBuilt("The transfer coding is not known. Send the body whole, or with Transfer-Encoding: chunked.")
        if head.repeated is not None:
            raise Malformed(f"The request has more than one {head.repeated} header.", code="malformed_request")
        path = call.path
        if path.startswith("/s/"):
            path = path[path.find("/", 3) :]
        if not self._hosts.admits(head.by_name.get(b"host")) and path not in OPEN_CONTROL:
            raise Forbidden(_FOREIGN_HOST, code="host_not_allowed")
        # A webhook's delivery could act here, or ask for more of its kind: it reaches nothing but an inbox.
        if DELIVERY in head.by_name and inbox_at(call.method, path) is None:
            message = f"A webhook delivery reaches nothing of this server but an inbox, /s/SANDBOX{CONTROL}/inbox/NAME."
            raise Forbidden(message, code="delivery_not_allowed")


def inbox_at(method: str, path: str) -> str | None:
    """The name of the inbox that a request posts to; None for every other request. `path` has no prefix."""
    if method != "POST" or not path.startswith(INBOX):
        return None
    name = path[len(INBOX) :]
    return name if name and "/" not in name else None
