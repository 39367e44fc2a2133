"""A server that is to stop says so first, and serves on for as long as a proxy may
need to notice.
"""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from ..support.live import NO_TLS
from ..support.make import created, customer_body
from ..support.processes import Process

pytestmark = [pytest.mark.check, pytest.mark.turn]

DRAINING = """
import runpy
from stub_server.cli import serving

create_app = serving.create_app

def draining(settings):
    app = create_app(settings)
    app.server.closing.drain = 4.0
    return app

serving.create_app = draining
runpy.run_module("stub_server", run_name="__main__")
"""
"""The command, of a server with the time that one of several has."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    (tmp_path / "draining.py").write_text(DRAINING, encoding="utf-8")
    with Process(
        "--scenario", "empty", module="draining", env={"PYTHONPATH": str(tmp_path)}
    ) as process:
        yield process


def ends_after(server: Process) -> float:
    """Seconds until the process has ended."""
    began = time.monotonic()
    while not server.has_ended:
        assert time.monotonic() - began < 20
        time.sleep(0.02)
    return time.monotonic() - began


def test_it_is_unready_and_serves_before_it_stops(server: Process) -> None:
    with server.api() as api, server.control() as control:
        assert {"status": "ready"} == control.get("/ready").json()
        server.signal(signal.SIGTERM)
        began = time.monotonic()
        refused = control.get("/ready")
        # the signal is on its way
        while refused.status_code == 200 and time.monotonic() < began + 1:
            refused = control.get("/ready")
        assert (503, "server_stopping") == (refused.status_code, refused.json()["code"])
        assert 200 == control.get("/health").status_code
        while time.monotonic() < began + 1:
            created(api.post("/v2/customers", json=customer_body()))
            # by a new connection
            assert 503 == httpx2.get(f"{server.url}/_sandbox/ready", verify=NO_TLS).status_code
            time.sleep(0.05)
        ends_after(server)
        assert time.monotonic() - began >= 3.9
    assert "" == server.said()


def test_a_second_signal_does_not_wait(server: Process) -> None:
    server.signal(signal.SIGTERM)
    time.sleep(0.3)
    server.signal(signal.SIGTERM)
    assert ends_after(server) < 3
    assert "" == server.said()


def test_an_interrupt_does_not_wait(server: Process) -> None:
    server.signal(signal.SIGINT)
    assert ends_after(server) < 3
    assert "" == server.said()
