"""Two servers on one PostgreSQL are killed, stopped, cut off and left without room while
clients go on.
"""

import signal
import time
from collections import Counter
from contextlib import ExitStack, closing
from random import Random
from typing import NamedTuple

import psycopg

from ..support import postgres
from ..support.postgres import Postgres
from ..support.processes import Process
from .clients import Client, Watcher

FLAGS = ("--scenario", "empty", "--now", "2026-11-20T14:32:05.123Z")
CLIENTS = 5
LEASE = 10.0
PROGRESS = 10  # changes of all clients between two events
PATIENCE = 60.0
# bytes of a file of PostgreSQL's log: where no file grows beyond them, tables have no room
SEGMENT = 1 << 20


class Harassed(NamedTuple):
    """What was done to the servers, what clients were answered, how many changes, and
    what is wrong.
    """

    events: dict[str, int]
    statuses: dict[str, int]
    acknowledged: int
    wrong: list[str]


def harassed(kills: int, seed: int) -> Harassed:
    """Kill servers so often, and have something else happen after each few kills."""
    with (
        postgres.running(segment=SEGMENT) as database,
        database.database() as url,
        ExitStack() as stack,
    ):
        servers = [stack.enter_context(Process("--store", url, *FLAGS)) for _ in range(2)]
        trial = stack.enter_context(closing(Trial(database, url, servers, Random(seed))))
        trial.run(kills)
        return Harassed(dict(trial.events), dict(trial.statuses), trial.acknowledged, trial.wrong)


class Trial:
    """Two servers, their database, and clients."""

    def __init__(
        self, database: Postgres, url: str, servers: list[Process], random: Random
    ) -> None:
        self._database, self._url, self._servers, self._random = database, url, servers, random
        grower = Client(servers, 0, random.randrange(1 << 30), only_makes=True)
        others = [
            Client(servers, number, random.randrange(1 << 30)) for number in range(1, CLIENTS)
        ]
        self._clients = [grower, *others, Watcher(servers, random.randrange(1 << 30), grower)]
        self.events: Counter[str] = Counter()
        self.wrong: list[str] = []

    def close(self) -> None:
        """Close the connections of the clients."""
        for client in self._clients:
            client.close()

    @property
    def acknowledged(self) -> int:
        """How many changes have been answered."""
        return sum(client.acknowledged for client in self._clients)

    @property
    def statuses(self) -> Counter[str]:
        """How often clients were answered what."""
        return sum((client.statuses for client in self._clients), Counter())

    def run(self, kills: int) -> None:
        """Kill servers so often while clients go on; then look at everything."""
        for client in self._clients:
            client.start()
        for number in range(kills):
            self._await_progress()
            self._kill()
            for every, event in (
                (5, self._cut),
                (10, self._restart),
                (30, self._stop),
                (50, self._fill),
            ):
                if number % every == 3:
                    self._await_progress()
                    event()
            if self._failed:
                break
        self._await_progress()
        for client in self._clients:
            client.end()
        self._look()
        for server in self._servers:
            server.stop()
        self._servers[0].start()
        self._servers[1].start()
        self._look()
        self.wrong += self._failed
        self.wrong += self._gaps()

    @property
    def _failed(self) -> list[str]:
        return [text for client in self._clients for text in client.wrong]

    def _await_progress(self) -> None:
        """Wait until clients have been answered since, through whatever happened."""
        before = self.acknowledged
        until = time.monotonic() + PATIENCE
        while self.acknowledged < before + PROGRESS and not self._failed:
            if time.monotonic() > until:
                self.wrong.append("clients are not answered any more")
                return
            time.sleep(self._random.random() * 0.1)

    def _look(self) -> None:
        for client in self._clients[:-1]:
            if not client.wrong:
                client.check_all()

    # -- what happens

    def _kill(self) -> None:
        """Kill a server and start it again.

        Mostly its lease ends with it, which saves ten seconds.
        """
        server = self._random.choice(self._servers)
        server.kill()
        waits = self._random.random() < 0.1
        if not waits:
            self._run(
                "update processes set until = clock_timestamp() where address = %s", server.url
            )
        server.start()
        self.events["killed, its lease goes on" if waits else "killed"] += 1

    def _stop(self) -> None:
        """Stop a server until others have its sandboxes, and let it go on."""
        server = self._random.choice(self._servers)
        server.signal(signal.SIGSTOP)
        time.sleep(LEASE + 1 + self._random.random())
        server.signal(signal.SIGCONT)
        self.events["stopped beyond its lease"] += 1

    def _restart(self) -> None:
        self._database.restart()
        self.events["the database restarted"] += 1

    def _cut(self) -> None:
        for _ in range(3):
            self._database.cut(self._url)
            time.sleep(self._random.random() * 0.3)
        self.events["connections cut"] += 3

    def _fill(self) -> None:
        """Have no table of the database grow for a while.

        They are larger by now than what is left to them.
        """
        with self._database.limited(SEGMENT):
            before = self.statuses["503"]
            until = time.monotonic() + PATIENCE
            while self.statuses["503"] < before + 5 and time.monotonic() < until:
                time.sleep(0.1)
            time.sleep(1)
        self.events["the disk full"] += 1

    # -- what the database has

    def _run(self, statement: str, *values: object) -> list[tuple[int, ...]]:
        with psycopg.connect(self._url, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def _gaps(self) -> list[str]:
        """Sandboxes whose steps are not one after the other."""
        found = self._run(
            "select place >> 32 from steps group by 1 having count(*) <> max(place) - min(place) +"
            " 1 order by 1"
        )
        return [f"steps of the sandbox {number} are missing" for (number,) in found]
