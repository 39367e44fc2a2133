"""A server that stops while deliveries are under way hears the answers that come in time, and waits
for no other.
"""

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from ..support.forked import Popen
from ..support.live import NO_TLS
from ..support.make import created, customer_body
from ..support.receiver import Received, Receiver, receiving
from ..support.wire import connect

pytestmark = [pytest.mark.check, pytest.mark.turn]


def address_of(process: "subprocess.Popen[str]") -> str:
    """Where a server that has just been started listens."""
    assert process.stdout is not None
    for line in process.stdout:
        if (found := re.search(r"address +(http://\S+)", line)) is not None:
            return found[1]
    raise AssertionError(process.communicate())


@contextmanager
def delivering(receiver: Receiver) -> Iterator["subprocess.Popen[str]"]:
    """A server of its own that has just sent something to a receiver, which has not
    answered yet.
    """
    command = [
        sys.executable,
        "-m",
        "stub_server",
        "serve",
        "--port",
        "0",
        "--scenario",
        "empty",
        "--log",
        "quiet",
    ]
    process = Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        with httpx2.Client(base_url=address_of(process), timeout=30, verify=NO_TLS) as client:
            token = created(client.post("/_sandbox/tokens", json={}))["token"]
            client.headers["Authorization"] = f"Bearer {token}"
            created(
                client.post(
                    "/v2/webhooks", json={"url": receiver.url, "events": ["customer.created"]}
                )
            )
            created(client.post("/v2/customers", json=customer_body()))
            assert receiver.arrived.wait(10)
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_an_answer_that_comes_in_time_is_waited_for() -> None:
    answering = threading.Event()

    def decide(request: Received, number: int) -> int:
        answering.wait(10)
        return 200

    with receiving() as receiver:
        receiver.decide = decide
        with delivering(receiver) as process:
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            assert process.poll() is None
            answering.set()
            assert 0 == process.wait(10)
            assert process.stderr is not None
            assert "" == process.stderr.read()


def test_a_receiver_that_never_answers_holds_nobody_up() -> None:
    with receiving() as receiver:
        receiver.hold = threading.Event()
        with delivering(receiver) as process:
            process.send_signal(signal.SIGTERM)
            assert 0 == process.wait(15)
            assert process.stderr is not None
            assert "" == process.stderr.read()


STUCK = """
import os, socket, sys, time
import stub_server.console.application
from stub_server.cli.command import main

asked = socket.getaddrinfo

def hanging(host, *rest, **options):
    if "silent" in str(host):
        os.write(1, b"name\\n")
        time.sleep(60)
    return asked(host, *rest, **options)

def page(environ, start_response):
    os.write(1, b"page\\n")
    time.sleep(4)
    start_response("200 OK", [("content-type", "text/plain")])
    return [b"late"]

socket.getaddrinfo = hanging
stub_server.console.application.create_console = lambda *_, **__: page
sys.argv[0] = "stub-server"
sys.exit(main())
"""
"""A server whose pages take long to make, and whose resolver never answers.

`print` would mix the lines of threads.
"""
FLAGS = ["serve", "--port", "0", "--scenario", "empty", "--log", "quiet"]


@pytest.mark.parametrize("flags", [[], ["--reload"], ["--store"]])
def test_a_server_ends_in_time_whatever_it_waits_for(flags: list[str], tmp_path: Path) -> None:
    """Streams and requests that wait, a page that is being made, a name that nobody resolves, load:
    five seconds.

    It was seen to wait for a thread that waited for the event loop, for ever.
    """
    if flags == ["--store"]:
        flags = ["--store", str(tmp_path / "store")]
    code = (
        [sys.executable, "-m", "stub_server"]
        if flags == ["--reload"]
        else [sys.executable, "-c", STUCK]
    )
    process = subprocess.Popen(
        [*code, *FLAGS, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        with ExitStack() as stack:
            url = address_of(process)
            client = stack.enter_context(httpx2.Client(base_url=url, timeout=30, verify=NO_TLS))
            token = created(client.post("/_sandbox/tokens", json={}))["token"]
            client.headers["Authorization"] = f"Bearer {token}"
            hook = {"url": "https://silent.stub-server.dev/hook", "events": ["customer.created"]}
            created(client.post("/v2/webhooks", json=hook))
            requests = ["/_sandbox/stream", "/_sandbox/events?wait=30", "/v2/plans", "/"]
            for path in requests:
                connection = stack.enter_context(connect(int(url.rpartition(":")[2])))
                connection.sendall(
                    f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Sandbox-Delay: 30000\r\n\r\n".encode()
                )
            created(client.post("/v2/customers", json=customer_body()))
            asked = {"page\n", "name\n"} if code[1] == "-c" else set()
            patience = threading.Timer(60, process.kill)
            patience.start()
            while asked:
                line = process.stdout.readline()
                assert line, asked
                asked.discard(line)
            patience.cancel()
            process.send_signal(signal.SIGTERM)
            assert 0 == process.wait(20), "it waits for what takes thirty seconds"
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.communicate()
