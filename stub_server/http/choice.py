"""Which world a request is for: its path's prefix, else its header, else its credential, else the default one."""

from __future__ import annotations

from ..calls.tokens import Tokens
from ..domain.api_keys import digest
from ..engine.sandbox import DEFAULT, Sandbox
from ..kernel.problem import Missing
from ..worlds.sandboxes import Sandboxes
from . import cors
from .arrival import Arrival
from .hosts import Hosts


class Choice:
    """One per server."""

    def __init__(self, sandboxes: Sandboxes, tokens: Tokens, hosts: Hosts, *, loopback: bool) -> None:
        """On loopback a world that is named for the first time is made."""
        self._sandboxes, self._tokens, self._hosts, self._loopback = sandboxes, tokens, hosts, loopback

    def __call__(self, arrival: Arrival) -> None:
        """Choose the world and take its prefix off the path. Raises Missing, and what making a world raises."""
        path = arrival.path
        if path.startswith("/s/"):
            name, slash, rest = path[3:].partition("/")
            arrival.sandbox = sandbox = self._named(name, arrival)
            arrival.prefix, arrival.path = f"/s/{sandbox.name}", slash + rest
            return
        headers = arrival.headers
        header = headers.get(b"x-sandbox")
        if header is not None:
            arrival.sandbox = self._named(header.decode("latin-1"), arrival)
            return
        authorization = headers.get(b"authorization")
        if authorization is not None:
            world = self._world_of(authorization)
            if world is not None and world != DEFAULT:
                arrival.sandbox = self._named(world, arrival)

    def _world_of(self, authorization: bytes) -> str | None:
        """The world that a credential is of. That admits nobody: the gate checks the credential itself."""
        start = authorization[:9].lower()
        if start == b"bearer ey":
            return self._tokens.sandbox_named(authorization)
        if start == b"bearer sk":
            return self._sandboxes.keyring.world_of(digest(authorization[7:].decode("latin-1").strip()))
        if start == b"bearer pk":
            return self._sandboxes.keyring.world_of(authorization[7:].decode("latin-1").strip())
        return None

    def _named(self, name: str, arrival: Arrival) -> Sandbox:
        # A page from elsewhere must not make worlds in a developer's server: their number is limited.
        is_new = self._loopback and self._sandboxes.find(name) is None
        headers = arrival.headers
        if is_new and (cors.is_from_elsewhere(headers) or not self._hosts.admits(headers.get(b"host"))):
            raise Missing("There is no such sandbox.", code="sandbox_not_found")
        return self._sandboxes.choose(name)
