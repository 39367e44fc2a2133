"""Seeded worlds without a server: what a scenario pours into a sandbox."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from stub_server.app import create_app
from stub_server.kernel.clock import parse_iso
from stub_server.sandbox import Sandbox
from stub_server.settings import Settings

from .live import NOW

FIXTURES = Path(__file__).parents[2] / "fixtures"
SECRET = b"a secret of thirty-two bytes yes"


def world(scenario: str, seed: int = 42, now: str = NOW) -> Sandbox:
    """A sandbox filled with a scenario, by name or path."""
    app = create_app(Settings(scenario=scenario, seed=seed, now=parse_iso(now), secret=SECRET))
    return app.sandboxes.default


def lines(sandbox: Sandbox) -> Iterator[bytes]:
    """Everything that a world holds, in order."""
    store = sandbox.store
    yield repr((store.merchant, sandbox.credentials, sandbox.sample, sandbox.personas)).encode()
    for name, table in store.tables.items():
        for key in table.order:
            record = table.rows[key]
            yield name.encode() + store.shown(table, record) + record.hidden
    for event in sandbox.events:
        yield event.payload()
    timers = sandbox.timers.copy()
    while (timer := timers.pop_due(2**62)) is not None:
        yield repr(timer).encode()


def digest(sandbox: Sandbox) -> str:
    """One text for a whole world."""
    sha = hashlib.sha256()
    for line in lines(sandbox):
        sha.update(line + b"\n")
    return sha.hexdigest()
