"""`stub-server listen`: events reach a local receiver, each once, whatever becomes of the server or
the receiver.
"""

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

import httpx2
import pytest
from click.testing import CliRunner
from standardwebhooks.webhooks import Webhook

from stub_server.cli.command import main

from ..support.contract import document
from ..support.forked import Popen
from ..support.live import Live
from ..support.make import Maker
from ..support.receiver import Receiver
from ..support.relay import relaying

pytestmark = [pytest.mark.check, pytest.mark.turn]

PATIENCE = 20.0


class Listening:
    """The command while it runs: its lines as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: queue.Queue[str] = queue.Queue()
        self.notices: queue.Queue[str] = queue.Queue()
        streams = ((process.stdout, self.lines), (process.stderr, self.notices))
        self._readers = [
            threading.Thread(target=self._read, args=both, daemon=True) for both in streams
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: TextIO, into: "queue.Queue[str]") -> None:
        with stream:
            for line in stream:
                into.put(line.rstrip("\n"))

    def end(self) -> None:
        """Kill it, if it still runs."""
        self.process.kill()
        self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)

    def line(self) -> str:
        """The next line."""
        return self.lines.get(timeout=PATIENCE)

    def notice(self) -> str:
        """The next line of the other stream."""
        return self.notices.get(timeout=PATIENCE)

    def stopped(self, number: int = signal.SIGINT) -> int:
        """The exit code after a signal."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def listening(server: str, sandbox: str, *args: str) -> Iterator[Listening]:
    """The command, until the block ends."""
    command = [
        sys.executable,
        "-m",
        "stub_server",
        "listen",
        "--server",
        server,
        "--sandbox",
        sandbox,
        *args,
    ]
    process = Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running = Listening(process)
    try:
        yield running
    finally:
        running.end()


def until(holds: Callable[[], object]) -> None:
    """Wait for something to come about."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def received(receiver: Receiver) -> list[str]:
    """The customers that the receiver was told of."""
    return [json.loads(request.body)["data"]["customer"]["id"] for request in receiver.requests]


def test_events_are_forwarded_signed_with_the_key_that_is_printed(
    live: Live,
    sandbox_name: str,
    api: httpx2.Client,
    make_customer: Maker,
    make_project: Maker,
    receiver: Receiver,
) -> None:
    """Only those that were asked for, a line for each, and no webhook is registered; the key stays
    the same.
    """
    keys = []
    webhooks = api.get("/v2/webhooks").json()["pagination"]["total"]
    for _ in range(2):
        args = ("--forward-to", receiver.url, "--events", "customer.*,order.paid")
        with listening(live.url, sandbox_name, *args) as running:
            head = running.line()
            assert head.startswith(
                f"Events of the sandbox {sandbox_name} go to {receiver.url}, signed with whsec_"
            )
            keys.append(head.split()[-1])
            make_project()
            customer = make_customer()
            time_, type_, status, ms, unit = running.line().split()
            assert (True, "customer.created", "200", True, "ms") == (
                time_.endswith("Z"),
                type_,
                status,
                ms.isdigit(),
                unit,
            )
            request = receiver.requests[-1]
            assert (
                customer
                == Webhook(keys[0]).verify(request.body.decode(), request.headers)["data"][
                    "customer"
                ]
            )
            assert 0 == running.stopped()
    assert 2 == len(receiver.requests)
    assert keys[0] == keys[1]
    assert webhooks == api.get("/v2/webhooks").json()["pagination"]["total"]


def test_nothing_is_lost_and_nothing_sent_twice_over_a_bad_network(
    live: Live, sandbox_name: str, make_customer: Maker, receiver: Receiver
) -> None:
    """Connections are cut, and answers with events in them are lost on the way."""
    made: list[str] = []

    def arrived(many: int) -> None:
        until(lambda: len(receiver.requests) >= many)

    with (
        relaying(live.port) as relay,
        listening(
            relay.url, sandbox_name, "--forward-to", receiver.url, "--events", "customer.created"
        ) as running,
    ):
        running.line()
        for round_ in range(3):
            made.append(make_customer()["id"])
            arrived(len(made))
            relay.swallows_answers = True
            made.append(make_customer()["id"])
            assert "The server does not answer" in running.notice()
            relay.cut()
            made += [make_customer()["id"] for _ in range(round_ + 1)]
            relay.swallows_answers = False
            relay.restore()
            arrived(len(made))
        assert made == received(receiver)
        # the last answer has come too
        assert ["200"] * len(made) == [running.line().split()[2] for _ in made]
        assert 0 == running.stopped(signal.SIGTERM)


def test_what_cannot_be_followed_exits_2_and_says_why(live: Live) -> None:
    patterns = len(document().schema("EventPattern")["enum"])
    for args, says in (
        ((), "--print to show them"),
        (("--forward-to", "localhost:3000"), "is not an address"),
        (("--print", "--events", " , "), "names no type"),
        (
            ("--print", "--events", "order.paid, order.pago", "--server", live.url),
            (
                f'Error: --events: type[1]: "order.pago" is not one of the {patterns} that the'
                " contract lists. Did you mean order.paid?"
            ),
        ),
        (
            ("--print", "--events", "order.pago,plan.pago", "--server", live.url),
            'Did you mean order.paid? type[1]: "plan.pago" is not one of',
        ),
        (("--print", "--server", "http://127.0.0.1:9"), "no sandbox answers at http://127.0.0.1:9"),
    ):
        said = CliRunner().invoke(main, ["listen", *args])
        assert (2, True) == (said.exit_code, says in " ".join(said.output.split())), said.output
