"""A server whose every bound but those of its logs is small, so that short sequences
reach all of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

from stub_server.app import create_app
from stub_server.engine import deliveries, lists, scheduler
from stub_server.engine import kept as logs
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.tables import query
from stub_server.server.layers.routing import Application
from stub_server.server.sandboxes.entry import keys_of

from ..support.live import FROZEN

NAME = "default"
BOUNDS = (
    (lists, "MOST_EVENTS", 25),
    (lists, "MOST_REPLIES", 3),
    (deliveries, "LOG_ROWS", 6),
    (deliveries, "MOST_LOG_ROWS", 30),
    (scheduler, "MOST_CHANGED", 2),
    (query, "SORTED_OUTRIGHT", 1),
    (logs, "MOST_BYTES", 1 << 30),  # a sequence is undone to its origin: nothing of it may go
)


@contextmanager
def small_server(scenario: str = "empty") -> Iterator[Application]:
    """The application over worlds of a scenario, with small bounds for as long as the
    block runs.
    """
    undo = [patch.object(module, name, value) for module, name, value in BOUNDS]
    for each in undo:
        each.start()
    try:
        app = create_app(replace(FROZEN, scenario=scenario))
        app.sandboxes.default.log.budget.most = 1 << 34
        yield app
    finally:
        for each in undo:
            each.stop()


def origin(app: Application) -> Sandbox:
    """The world as it is seeded, apart from the server; `serve` has the server answer from it."""
    return app.sandboxes.factory.make(NAME, "")


def serve(app: Application, world: Sandbox) -> None:
    """Have the server answer from a world."""
    sandboxes = app.sandboxes
    entry = sandboxes.entry(NAME)
    entry.snapshots.clear()
    world.status.on_due = sandboxes.default.status.on_due
    entry.sandbox = sandboxes.default = world
    entry.keys = keys_of(world)


class Wall:
    """A wall clock that moves by 37 ms, or by `each`, whenever somebody looks."""

    def __init__(self, start: int, each: int = 37) -> None:
        """Both in ms."""
        self.now = start
        self.each = each

    def __call__(self) -> int:
        """The next instant."""
        self.now += self.each
        return self.now
