"""Servers that begin at the same moment on an empty database: one sets it up, and all serve."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from time import monotonic, sleep

import psycopg
import pytest

from ..support.postgres import Postgres
from ..support.processes import Process
from .conftest import FLAGS, key_opens

pytestmark = pytest.mark.check
SERVERS = 3


def _all_serve(postgres: Postgres) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(postgres.database())
        servers = [Process("--store", url, *FLAGS) for _ in range(SERVERS)]
        for server in servers:
            stack.callback(server.end)
        with ThreadPoolExecutor(SERVERS) as at_once:
            list(at_once.map(Process.start, servers))
        for server in servers:
            key_opens(server)
        with psycopg.connect(url, autocommit=True) as connection:
            deadline = monotonic() + 10
            while (names := _names(connection)) != ["default"]:  # what the others had begun goes
                assert monotonic() < deadline, names
                sleep(0.05)


def _names(connection: psycopg.Connection) -> list[str | None]:
    return [name for (name,) in connection.execute("select name from sandboxes").fetchall()]


def test_three_servers_begin_at_once_on_an_empty_database(postgres: Postgres) -> None:
    for _ in range(3):
        _all_serve(postgres)


@pytest.mark.night
def test_three_servers_begin_at_once_on_twenty_empty_databases(postgres: Postgres) -> None:
    for _ in range(20):
        _all_serve(postgres)
