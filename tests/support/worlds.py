"""Seeded worlds without a server: what a scenario pours into a sandbox."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from stub_server.app import create_app
from stub_server.engine.draft import Draft
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.step import Cause
from stub_server.kernel.clock import parse_iso
from stub_server.settings import Settings

from .live import NOW

FIXTURES = Path(__file__).parents[2] / "fixtures"
SECRET = b"a secret of thirty-two bytes yes"


_OWN = re.compile(rb'[ps]k_sandbox_\w+|"digest":"\w+"')


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
    for timer in sandbox.timers.pending():
        yield repr(timer).encode()


def drafted(sandbox: Sandbox) -> Draft:
    """A draft of the seeded merchant's, to write what no request would."""
    return Draft(sandbox, sandbox.store, Cause("control", "", "test"))


def digest(sandbox: Sandbox, *, but_keys: bool = False) -> str:
    """One text for a whole world; `but_keys` leaves out the API keys' secrets, which follow the world's name."""
    sha = hashlib.sha256()
    for line in lines(sandbox):
        sha.update((_OWN.sub(b"", line) if but_keys else line) + b"\n")
    return sha.hexdigest()
