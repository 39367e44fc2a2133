"""A disk that is full for one server, and has room again."""

import resource
from time import monotonic, sleep

import httpx2

from .processes import Process

FULL = 4096  # bytes: no file grows beyond them


def recovered(control: httpx2.Client) -> None:
    """Wait for a server to find that its store can be written again, which it does
    within a second.
    """
    until = monotonic() + 1.5
    while control.get("/ready").status_code == 503 and monotonic() < until:
        sleep(0.05)
    assert {"status": "ready"} == control.get("/ready").json()


class Disk:
    """What a server may write: a file that would grow beyond a bound fails as on a full disk, but
    for the error.
    """

    def __init__(self, server: Process) -> None:
        self._server = server

    def fill(self) -> None:
        """Have no room."""
        self._limit(FULL)

    def make_room(self) -> None:
        """Have room again."""
        self._limit(resource.RLIM_INFINITY)

    def free(self) -> None:
        """Have room again, and wait until the server has found it."""
        self.make_room()
        with self._server.control() as control:
            recovered(control)

    def _limit(self, most: int) -> None:
        resource.prlimit(self._server.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
