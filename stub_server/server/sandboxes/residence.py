"""Opens sandboxes of a store that are not in memory: on request, and when a delivery of
theirs is due.
"""

import asyncio
from functools import partial
from time import monotonic

from ...core.clock import wall_ms
from ...core.log import log
from ...core.problem import Refusal, store_unavailable
from ...core.slices import BackgroundWorker
from ...engine.sandbox import Sandbox
from ...storage import sql
from ...storage.database import StoreError
from .entry import folded, is_name
from .loaded import LoadedSandboxes

REMEMBERED = 1.0  # seconds for which it is remembered which server has a sandbox
# seconds between two searches for deliveries that are due in sandboxes that no server has in memory
SCAN = 1.0


class Residence:
    """One per server with a store.

    Other servers may have its sandboxes, and a failed commit unloads them.
    """

    def __init__(self, sandboxes: LoadedSandboxes) -> None:
        self._sandboxes, self._persistence = sandboxes, sandboxes.persistence
        self._persistence.on_lost = sandboxes.unload
        self._elsewhere: dict[str, tuple[str, float]] = {}
        self._openings = BackgroundWorker()
        self._scanning: asyncio.Task[None] | None = None

    async def sandbox_of(self, key: str) -> str | None:
        """The sandbox of an API key, by a private key's digest or a public key.

        Raises Unavailable.
        """
        return self._sandboxes.keyring.get(key) or await self._persistence.query(
            lambda session: sql.sandbox_with(session, key)
        )

    async def locate(self, name: str) -> Sandbox | str | None:
        """A sandbox; the address of the server that has it; None where there is none of this name.

        Raises Unavailable.
        """
        found = self._sandboxes.choose(name)
        if found is not None:
            return found
        address, until = self._elsewhere.get(folded(name), ("", 0.0))
        if until > monotonic():
            return address
        name = folded(name)
        if is_name(name) is None:  # PostgreSQL refuses some texts
            return None
        async with self._openings.own(name):  # else two requests would open it twice
            return self._sandboxes.choose(name) or await self._open(name)

    async def _open(self, name: str) -> Sandbox | str | None:
        try:
            opened = await self._persistence.open(name)
        except StoreError as error:
            log.error("%s", error)
            raise store_unavailable(
                f"The sandbox {name} cannot be opened. The server's log says why."
            ) from None
        if isinstance(opened, str):
            self._elsewhere[name] = opened, monotonic() + REMEMBERED
            return opened
        if opened is not None:
            self._sandboxes.put(opened)
        return self._sandboxes.choose(name)

    def forget(self, name: str) -> None:
        """Forget which server has a sandbox."""
        self._elsewhere.pop(folded(name), None)

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
                due = partial(sql.due, store=self._persistence.store, now=wall_ms())
                for name in await self._persistence.query(due):
                    if self._sandboxes.find(name) is None:
                        await self.locate(name)
            except Refusal as error:
                log.debug("sandboxes whose deliveries are due could not be opened (%s)", error)
