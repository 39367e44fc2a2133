"""Two servers on one database, as processes of their own."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from ..support.postgres import Postgres
from ..support.processes import Process
from ..support.wire import Door

FLAGS = ("--scenario", "empty", "--now", "2026-11-20T14:32:05.123Z")


def key_opens(server: Process) -> None:
    """The key of a server's banner opens the API."""
    answer = Door(server.port, "", server.fact("API key")).ask("GET", "/v2/customers")
    assert 200 == answer.status, (answer.body, server.banner)


@dataclass(frozen=True, slots=True)
class Pair:
    """`holder` has the sandbox `team`; `other` forwards to it."""

    holder: Process
    other: Process
    database: str
    token: str

    def door(self, process: Process, sandbox: str = "team") -> Door:
        """A server, for requests as they are written."""
        return Door(process.port, f"/s/{sandbox}", self.token)

    @property
    def doors(self) -> tuple[Door, Door]:
        """The same sandbox at once and over a hop."""
        return self.door(self.holder), self.door(self.other)


@pytest.fixture(scope="module")
def pair(postgres: Postgres) -> Iterator[Pair]:
    """Two servers, the second of which has no sandbox."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres.database())
        flags = (
            "--store",
            url,
            *FLAGS,
            "--rate-limit",
            "100000/60s",
            "--forwarded-allow-ips",
            "127.0.0.9,127.0.0.1",
        )
        holder, other = (stack.enter_context(Process(*flags)) for _ in range(2))
        with holder.control("team") as control:
            token = control.get("/credentials").json()["jwt"]
        yield Pair(holder, other, url, token)
