"""A server that stops while deliveries are under way hears the answers that come in time, and waits for no other."""

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from ..support.live import NO_TLS
from ..support.make import created, customer_body
from ..support.receiver import Received, Receiver, receiving


@contextmanager
def delivering(receiver: Receiver) -> Iterator["subprocess.Popen[str]"]:
    """A server of its own that has just sent something to a receiver, which has not answered yet."""
    command = [sys.executable, "-m", "stub_server", "serve", "--port", "0", "--scenario", "empty", "--log", "quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        url = None
        while url is None:
            line = process.stdout.readline()
            assert line
            url = re.search(r"address +(http://\S+)", line)
        with httpx2.Client(base_url=url[1], timeout=30, verify=NO_TLS) as client:
            token = created(client.post("/_sandbox/tokens", json={}))["token"]
            client.headers["Authorization"] = f"Bearer {token}"
            created(client.post("/v2/webhooks", json={"url": receiver.url, "events": ["customer.created"]}))
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
