"""The console of several servers: pages are those of the one that has the sandbox, and a session
holds at all.
"""

from contextlib import ExitStack, closing

import httpx2
import pytest

from ..support.console import Console
from ..support.live import NO_TLS
from ..support.postgres import Postgres
from ..support.processes import Process
from .conftest import FLAGS

pytestmark = [pytest.mark.check, pytest.mark.turn]


def test_a_session_holds_at_all_servers_of_a_store(postgres: Postgres) -> None:
    """A proxy sends a browser to either, and each has sandboxes of its own."""
    flags = (*FLAGS, "--admin-key", "opensesame", "--allow-host", "sandbox.example.com")
    with ExitStack() as stack:
        url = stack.enter_context(postgres.database())
        servers = [stack.enter_context(Process("--store", url, *flags)) for _ in range(2)]
        names = ["one", "two"]
        for server, name in zip(servers, names, strict=True):
            headers = {"X-Sandbox-Admin-Key": "opensesame"}
            address = f"{server.url}/_sandbox/sandboxes"
            assert (
                201
                == httpx2.post(
                    address, json={"name": name}, headers=headers, verify=NO_TLS
                ).status_code
            )
        console = stack.enter_context(closing(Console(servers[0].url)))
        console.origin = "http://sandbox.example.com"
        console.http.headers["Host"] = "sandbox.example.com"
        opened = console.send(
            console.open("/console/requests"), "Open the console", key="opensesame"
        )
        assert 200 == opened.status
        for _ in range(2):
            for server in servers:
                for name in ("default", *names):
                    console.base = f"{server.url}/s/{name}"
                    page = console.open("/console/clock")
                    assert 200 == page.status, (server.url, name)
                    assert 200 == console.send(page, "An hour").status
        assert 403 == console.send(console.open("/console/requests"), "Leave").status
        for server in servers:
            console.base = server.url
            assert 403 == console.open("/console/requests").status
