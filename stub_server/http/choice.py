"""Which world a request is for: its path's prefix, else its header, else its credential, else the default one."""

from __future__ import annotations

from collections.abc import Awaitable, Container
from functools import partial

from ..calls.call import CONTROL, Call
from ..calls.tokens import Tokens
from ..domain.api_keys import digest
from ..engine.sandbox import DEFAULT, Sandbox
from ..kernel.problem import Missing, Unavailable
from ..worlds.names import folded
from ..worlds.sandboxes import Sandboxes
from . import cors
from .door import check_control
from .hosts import Hosts

CREDENTIALS = f"{CONTROL}/credentials"


class Choice:
    """One per server."""

    def __init__(
        self,
        sandboxes: Sandboxes,
        tokens: Tokens,
        hosts: Hosts,
        pages: Container[str],
        *,
        loopback: bool,
    ) -> None:
        """On loopback the first request to a world that is let in makes it. `pages` are paths for everybody."""
        self._sandboxes, self._tokens, self._hosts, self._loopback = sandboxes, tokens, hosts, loopback
        self._pages = pages

    def __call__(self, call: Call) -> Awaitable[None] | None:
        """Choose the world and take its prefix off the path. A world that must be made first is waited for.

        Raises Missing, and what making a world raises.
        """
        path, head = call.path, call.head
        if path.startswith("/s/"):
            name, slash, rest = path[3:].partition("/")
            return self._named(name, call, slash + rest)
        if head.sandbox is not None:
            return self._named(head.sandbox, call, None)
        authorization = head.by_name.get(b"authorization")
        if authorization is not None:
            world = self._world_of(authorization)
            if world is not None and world != DEFAULT:
                return self._named(world, call, None)
        return None

    def _world_of(self, authorization: bytes) -> str | None:
        """The world that a credential is of. That admits nobody: the gate checks the credential itself."""
        named = self._tokens.sandbox_named(authorization)
        if named is not None:
            return named
        start = authorization[:9].lower()
        if start == b"bearer sk":
            return self._sandboxes.keyring.world_of(digest(authorization[7:].decode("latin-1").strip()))
        if start == b"bearer pk":
            return self._sandboxes.keyring.world_of(authorization[7:].decode("latin-1").strip())
        return None

    def _named(self, name: str, call: Call, rest: str | None) -> Awaitable[None] | None:
        """Have the request be for a world; `rest` is the path below its prefix, if it was named by one."""
        world = self._sandboxes.choose(name)
        if world is None:
            return self._mentioned(name, call, rest)
        _stand(call, world, rest)
        return None

    async def _mentioned(self, name: str, call: Call, rest: str | None) -> None:
        """Have the request be for a sandbox that does not exist. It is created once the request is accepted.

        Raises Missing for what only reads the control surface, but for credentials.
        """
        headers = call.headers
        # A page from elsewhere must not make worlds in a developer's server: their number is limited.
        if self._loopback and (cors.is_from_elsewhere(headers) or not self._hosts.admits(headers.get(b"host"))):
            raise Missing("There is no such sandbox.", code="sandbox_not_found")
        path = call.path if rest is None else rest
        is_control = path.startswith(CONTROL)
        if is_control and call.method != "OPTIONS":
            check_control(call, path, None)
        if call.method in ("GET", "HEAD") and (not path or path in self._pages):
            _stand(call, await self._sandboxes.mention(name), rest)
            return
        only_reads = is_control and call.method in ("GET", "HEAD") and path != CREDENTIALS
        suggests = self._loopback or call.server.knows_admin(headers.get(b"x-sandbox-admin-key"))
        world = await self._sandboxes.meant(name, creates=not only_reads, suggests=suggests)
        _stand(call, world, rest)
        if self._sandboxes.find(world.name) is not world:
            call.meant, call.first_use = world, partial(self._let_in, call)

    async def _let_in(self, call: Call) -> None:
        """The request is accepted: its sandbox is created."""
        assert call.meant is not None
        world = await self._sandboxes.let_in(call.meant)
        if world is call.meant:
            call.made = self._sandboxes.entry(world.name)
        else:  # another request created it first
            store = world.stores.get(call.store.merchant.id)
            if store is None:
                raise Unavailable(
                    "The sandbox has just been made. Send the request again.", headers={"Retry-After": "0"}
                )
            call.sandbox, call.store, call.trace.id = world, store, world.ids.request()
        call.meant = None

    def turn_back(self, call: Call) -> None:
        """A request failed: the sandbox that it created, if any, is deleted again, unless others used it meanwhile.

        A request whose sandbox does not exist is kept in the default one's journal, with its whole path and an id of
        the default one.
        """
        if call.meant is None and (call.made is None or not self._sandboxes.take_back(call.made)):
            return
        trace, default = call.trace, self._sandboxes.default
        call.sandbox, call.meant, call.made = default, None, None
        trace.after = None
        trace.id, trace.at, trace.before = default.ids.request(), default.clock.read(), default.log.number
        trace.sandbox, trace.path, call.prefix = DEFAULT, call.prefix + trace.path, ""


def _stand(call: Call, world: Sandbox, rest: str | None) -> None:
    call.sandbox = world
    if rest is not None:
        call.prefix, call.path = f"/s/{world.name}", rest
        if call.head.sandbox is not None and folded(call.head.sandbox) != world.name:
            call.warn("x_sandbox_ignored")
