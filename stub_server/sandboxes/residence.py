"""Which sandboxes of a store are in memory: opened on request, unloaded when others need the room."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from ..engine.sandbox import DEFAULT, Sandbox
from ..kernel.clock import wall_ms
from ..kernel.problem import Refusal, Unavailable, store_unavailable
from ..persistence import sql
from ..persistence.sql import StoreError
from .entry import Entry, folded, too_many

if TYPE_CHECKING:
    from .sandboxes import Sandboxes

REMEMBERED = 1.0  # seconds for which it is remembered which server has a sandbox
MOST_STORED = 100_000  # sandboxes of a store
MOST = 10_000  # sandboxes of which that is remembered
IDLE = 100  # ms for which a sandbox must be unused before it is unloaded
SCAN = 1.0  # seconds between two searches for deliveries that are due in sandboxes that no server has in memory
log = logging.getLogger("stub_server")


class Residence:
    """One per server with a store that has more sandboxes than are in memory, or more servers than this one."""

    def __init__(self, sandboxes: Sandboxes, most: int, is_used: Callable[[Entry], bool]) -> None:
        """At most `most` are in memory. One that `is_used`, since it has readers or sends, is not unloaded."""
        self._sandboxes, self._most, self._is_used = sandboxes, most, is_used
        self._persistence = sandboxes.persistence
        self._persistence.on_lost = sandboxes.unload
        self._elsewhere: dict[str, tuple[str, float]] = {}
        self.known = len(sandboxes.sandboxes())  # sandboxes of the store, as of the last look
        self._opening = asyncio.Lock()
        self._scanning: asyncio.Task[None] | None = None

    async def sandbox_of(self, key: str) -> str | None:
        """The sandbox of an API key, by a private key's digest or a public key. Raises Unavailable."""
        name: str | None = self._sandboxes.keyring.get(key)
        return name or await self._persistence.query(lambda session: sql.sandbox_with(session, key))

    async def locate(self, name: str) -> Sandbox | str | None:
        """A sandbox; the address of the server that has it; None where there is none of this name.

        Raises Unavailable.
        """
        found = self._sandboxes.choose(name)
        if found is not None:
            return found
        name = folded(name)
        address, until = self._elsewhere.get(name, ("", 0.0))
        if until > monotonic():
            return address
        async with self._opening:  # else two requests would open it twice
            found = self._sandboxes.choose(name)
            if found is not None:
                return found
            sandboxes = self._sandboxes
            try:
                opened = await self._persistence.open(name)
            except StoreError as error:
                log.error("%s", error)
                raise store_unavailable(f"The sandbox {name} cannot be opened. The server's log says why.") from None
            if isinstance(opened, str):
                if len(self._elsewhere) >= MOST:
                    self._elsewhere.clear()
                self._elsewhere[name] = opened, monotonic() + REMEMBERED
                return opened
            if opened is not None:
                await self._make_room()
                sandboxes.put(opened)
            return sandboxes.choose(name)

    def forget(self, name: str) -> None:
        """Forget which server has a sandbox."""
        self._elsewhere.pop(folded(name), None)

    async def make_room(self) -> None:
        """Unload the sandboxes idle longest, so that one more has room in memory. Raises Unavailable."""
        if await self._persistence.query(sql.count) >= MOST_STORED:
            raise too_many(MOST_STORED, "store")
        async with self._opening:  # one that is unloaded must not be opened before it is released
            await self._make_room()

    async def _make_room(self) -> None:
        sandboxes, before = self._sandboxes, wall_ms() - IDLE
        entries = sandboxes.entries()
        surplus = len(entries) + 1 - self._most
        if surplus <= 0:
            return
        idle = [entry for entry in entries if entry.last_used_at < before and entry.sandbox.name != DEFAULT]
        for entry in sorted(idle, key=lambda entry: entry.turn):
            if self._persistence.is_settled(entry.sandbox) and not self._is_used(entry):
                sandboxes.unload(entry.sandbox)
                await self._persistence.release(entry.sandbox.name)
                surplus -= 1
                if not surplus:
                    return
        if surplus > self._most // 10 + 10:
            raise Unavailable(
                f"All {self._most} sandboxes that may be in memory are in use.",
                advice="Send this again in a moment.",
                headers={"Retry-After": "1"},
            )

    def start(self) -> None:
        """Start to search for deliveries that are due in sandboxes that no server has in memory."""
        self._scanning = asyncio.create_task(self._scan())

    def stop(self) -> None:
        """Stop that."""
        if self._scanning is not None:
            self._scanning.cancel()

    async def _scan(self) -> None:
        while True:
            await asyncio.sleep(SCAN)
            try:
                self.known = await self._persistence.query(sql.count)
                due = partial(sql.due, store=self._persistence.store, now=wall_ms())
                for name in await self._persistence.query(due):
                    if self._sandboxes.find(name) is None:
                        await self.locate(name)
            except Refusal as error:
                log.debug("sandboxes whose deliveries are due could not be opened (%s)", error)
