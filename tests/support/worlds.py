"""Seeded worlds without a server: what a scenario pours into a sandbox."""

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path

from stub_server.app import create_app
from stub_server.core.clock import parse_iso
from stub_server.core.slices import at_once
from stub_server.data.keys import own_pair
from stub_server.engine.draft import Draft
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.scheduler import Fired, jobs_until, move_clock
from stub_server.engine.step import Cause
from stub_server.server.sandboxes.sandboxes import Sandboxes
from stub_server.settings import Settings

from .live import NOW

FIXTURES = Path(__file__).parents[2] / "fixtures"
SECRET = b"a secret of thirty-two bytes yes"


def world(scenario: str, seed: int = 42, now: str = NOW) -> Sandbox:
    """A sandbox filled with a scenario, by name or path."""
    app = create_app(Settings(scenario=scenario, seed=seed, now=parse_iso(now), secret=SECRET))
    return app.sandboxes.default


def first_used(sandboxes: Sandboxes, name: str) -> Sandbox:
    """The sandbox of this name, as the first request to it creates it."""

    async def use() -> Sandbox:
        return await sandboxes.register(await sandboxes.pending_sandbox(name))

    return asyncio.run(use())


def lines(sandbox: Sandbox, *, keys: bool = True) -> Iterator[bytes]:
    """Everything that a world holds, in order; without `keys` what two worlds of one seed
    have in common.
    """
    store = sandbox.store
    yield repr(
        (
            store.merchant,
            own_pair(sandbox) if keys else (),
            sandbox.origin.sample,
            sandbox.origin.personas,
        )
    ).encode()
    for name, table in store.tables.items():
        if name == "api_keys" and not keys:
            continue
        for key in table.order:
            record = table.rows[key]
            yield name.encode() + store.shown(table.name, record) + record.hidden
    for event in sandbox.events:
        yield event.payload()
    for timer in sandbox.timers.pending():
        yield repr(timer).encode()


def advance(sandbox: Sandbox, to: int) -> list[Fired]:
    """Move the clock of a world to an instant, without deliveries to other machines; what the clock
    has done.
    """
    fired: list[Fired] = []
    at_once(jobs_until(sandbox, to, fired))
    move_clock(sandbox, to, Cause("control", "", "test"))
    return fired


def drafted(sandbox: Sandbox) -> Draft:
    """A draft of the seeded merchant's, to write what no request would."""
    return Draft(sandbox, sandbox.store, Cause("control", "", "test"))


def digest(sandbox: Sandbox, *, keys: bool = True) -> str:
    """One text for a whole world."""
    sha = hashlib.sha256()
    for line in lines(sandbox, keys=keys):
        sha.update(line + b"\n")
    return sha.hexdigest()
