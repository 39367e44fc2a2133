"""A server that stops while deliveries are under way hears the answers that come in time, and waits
for no other.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ..support.make import created, customer_body
from ..support.processes import Process
from ..support.receiver import Received, Receiver, receiving
from ..support.wire import connect

pytestmark = [pytest.mark.check, pytest.mark.turn]


@contextmanager
def delivering(receiver: Receiver) -> Iterator[Process]:
    """A server of its own that has just sent something to a receiver, which has not
    answered yet.
    """
    with Process("--scenario", "empty") as server, server.api() as api:
        hook = {"url": receiver.url, "events": ["customer.created"]}
        created(api.post("/v2/webhooks", json=hook))
        created(api.post("/v2/customers", json=customer_body()))
        assert receiver.arrived.wait(10)
        yield server


def test_an_answer_that_comes_in_time_is_waited_for() -> None:
    answering = threading.Event()

    def decide(request: Received, number: int) -> int:
        answering.wait(10)
        return 200

    with receiving() as receiver:
        receiver.decide = decide
        with delivering(receiver) as server:
            server.signal(signal.SIGTERM)
            time.sleep(0.5)
            assert not server.has_ended
            answering.set()
            assert "" == server.said()


def test_a_receiver_that_never_answers_holds_nobody_up() -> None:
    with receiving() as receiver:
        receiver.hold = threading.Event()
        with delivering(receiver) as server:
            assert "" == server.stop(15)


STUCK = """
import runpy, socket, time
from pathlib import Path
import stub_server.console.application

asked = socket.getaddrinfo

def hanging(host, *rest, **options):
    if "silent" in str(host):
        Path(__file__).with_name("name").touch()
        time.sleep(60)
    return asked(host, *rest, **options)

def page(environ, start_response):
    Path(__file__).with_name("page").touch()
    time.sleep(4)
    start_response("200 OK", [("content-type", "text/plain")])
    return [b"late"]

socket.getaddrinfo = hanging
stub_server.console.application.create_console = lambda *_, **__: page
runpy.run_module("stub_server", run_name="__main__")
"""
"""A server whose pages take long to make, and whose resolver never answers."""


@pytest.mark.parametrize("flags", [[], ["--reload"], ["--store"]])
def test_a_server_ends_in_time_whatever_it_waits_for(flags: list[str], tmp_path: Path) -> None:
    """Streams and requests that wait, a page that is being made, a name that nobody resolves, load:
    five seconds.

    It was seen to wait for a thread that waited for the event loop, for ever.
    """
    (tmp_path / "stuck.py").write_text(STUCK, encoding="utf-8")
    if flags == ["--store"]:
        flags = ["--store", str(tmp_path / "store")]
    # what restarts is a process below the one that is started here
    module, asked = ("stub_server", []) if flags == ["--reload"] else ("stuck", ["page", "name"])
    server = Process(
        "--scenario", "empty", *flags, module=module, env={"PYTHONPATH": str(tmp_path)}
    )
    with ExitStack() as stack:
        api = stack.enter_context(stack.enter_context(server).api())
        hook = {"url": "https://silent.stub-server.dev/hook", "events": ["customer.created"]}
        created(api.post("/v2/webhooks", json=hook))
        for path in ("/_sandbox/stream", "/_sandbox/events?wait=30", "/v2/plans", "/"):
            connection = stack.enter_context(connect(server.port))
            connection.sendall(
                f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Sandbox-Delay: 30000\r\n\r\n".encode()
            )
        created(api.post("/v2/customers", json=customer_body()))
        until = time.monotonic() + 60
        while not all((tmp_path / name).exists() for name in asked):
            assert time.monotonic() < until, asked
            time.sleep(0.01)
        assert "Traceback" not in server.stop(20), "it waits for what takes thirty seconds"
