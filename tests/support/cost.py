"""What requests cost a server in this process: CPU time in all, and for how long nobody else is
served.

A heartbeat on the server's event loop reads the CPU time of the process. Between two beats nobody
else is served: the loop runs something, or another thread keeps the interpreter. CPU time does not
count what other programs of the machine take, so that the figures hold on a busy one.
"""

import asyncio
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from starlette.types import Receive, Scope, Send

from stub_server.app import create_app
from stub_server.cli.listening import with_port
from stub_server.cli.serving import HANDOVER
from stub_server.server.layers.routing import Application
from stub_server.server.protocol import Limits
from stub_server.settings import Settings

from .live import FROZEN, serving
from .wire import Door

EVERY = 0.001  # seconds between two beats
REPEATS = 5
REFERENCE = 0.008  # seconds of CPU time


def slowness() -> float:
    """How much more CPU time this machine takes than the one on which bounds were measured: never
    less than 1.
    """

    def took() -> float:
        began = time.thread_time()
        sum(number * number for number in range(200_000))
        return time.thread_time() - began

    return max(1.0, min(took() for _ in range(REPEATS)) / REFERENCE)


class Cost(NamedTuple):
    """Seconds of CPU time: `hold` is the longest time in which nobody else was served."""

    total: float
    hold: float


class Heartbeat:
    """Beats on the event loop of an application, once it has begun to serve."""

    def __init__(self, app: Application) -> None:
        self.app = app
        self._last = self._longest = 0.0
        self._beats = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve as the application does."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._last = time.process_time()
            self._beat()
        await self.app(scope, receive, send)

    def _beat(self) -> None:
        now = time.process_time()
        self._longest = max(self._longest, now - self._last)
        self._last = now
        self._beats = self._beats + 1
        assert self._loop is not None
        self._loop.call_later(EVERY, self._beat)

    def _wait(self) -> None:
        """Wait until whatever ran has been counted."""
        until = self._beats + 2
        while self._beats < until:
            time.sleep(EVERY)

    def cost_of(self, work: Callable[[], Any]) -> Cost:
        """What some requests cost that `work` sends."""
        self._wait()
        self._longest = 0.0
        before = time.process_time()
        work()
        self._wait()
        return Cost(time.process_time() - before, self._longest)

    def least(self, work: Callable[[], Any], enough: float = 0.0) -> Cost:
        """The least of several costs; of one alone whose hold is below `enough`."""
        found = [self.cost_of(work)]
        while len(found) < REPEATS and found[-1].hold > enough:
            found.append(self.cost_of(work))
        return Cost(min(each.total for each in found), min(each.hold for each in found))


class Measured(NamedTuple):
    """A server whose heart is listened to. `door` leads to its default sandbox."""

    door: Door
    heart: Heartbeat


@contextmanager
def measured(settings: Settings = FROZEN) -> Iterator[Measured]:
    """Serve the sandbox of some settings until the block ends, with threads that give way as the
    product's do.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(HANDOVER)
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            app = create_app(with_port(settings, listener))
            heart = Heartbeat(app)
            with serving(heart, Limits(), listener) as port:
                token = app.server.ready_token(app.sandboxes.default)
                yield Measured(Door(port, "", token), heart)
    finally:
        sys.setswitchinterval(interval)
