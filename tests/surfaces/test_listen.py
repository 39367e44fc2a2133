"""`stub-server listen`: events reach a local receiver, each once, whatever becomes of the server or the receiver."""

import json
import queue
import signal
import socket
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

from stub_server.cli import main

from ..support.forked import Popen
from ..support.live import NO_TLS, Live
from ..support.make import Json, Maker
from ..support.receiver import Receiver, receiving
from ..support.relay import relaying

pytestmark = pytest.mark.check

PATIENCE = 20.0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on this machine."""
    with receiving() as made:
        yield made


class Listening:
    """The command while it runs: its lines as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: queue.Queue[str] = queue.Queue()
        self.notices: queue.Queue[str] = queue.Queue()
        streams = ((process.stdout, self.lines), (process.stderr, self.notices))
        self._readers = [threading.Thread(target=self._read, args=both, daemon=True) for both in streams]
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
    command = [sys.executable, "-m", "stub_server", "listen", "--server", server, "--sandbox", sandbox, *args]
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
    live: Live, sandbox_name: str, api: httpx2.Client, make_customer: Maker, make_project: Maker, receiver: Receiver
) -> None:
    """Only those that were asked for, a line for each, and no webhook is registered; the key stays the same."""
    keys = []
    webhooks = api.get("/v2/webhooks").json()["pagination"]["total"]
    for _ in range(2):
        args = ("--forward-to", receiver.url, "--events", "customer.*,order.paid")
        with listening(live.url, sandbox_name, *args) as running:
            head = running.line()
            assert head.startswith(f"Events of the sandbox {sandbox_name} go to {receiver.url}, signed with whsec_")
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
            assert customer == Webhook(keys[0]).verify(request.body.decode(), request.headers)["data"]["customer"]
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
        listening(relay.url, sandbox_name, "--forward-to", receiver.url, "--events", "customer.created") as running,
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
            assert "The server is back." == running.notice()
            arrived(len(made))
        assert made == received(receiver)
        assert ["200"] * len(made) == [running.line().split()[2] for _ in made]  # the last answer has come too
        assert 0 == running.stopped(signal.SIGTERM)


def test_a_receiver_that_is_away_is_waited_for(live: Live, sandbox_name: str, make_customer: Maker) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with listening(live.url, sandbox_name, "--forward-to", f"http://127.0.0.1:{port}/hook") as running:
        running.line()
        made = [make_customer()["id"] for _ in range(3)]
        assert f"No answer from http://127.0.0.1:{port}/hook (connection_refused)" in running.notice()
        with receiving(port) as receiver:
            assert "The receiver is back." == running.notice()
            until(lambda: len(receiver.requests) == 3)
            assert made == received(receiver)
            assert ["200"] * 3 == [running.line().split()[2] for _ in made]
        assert 0 == running.stopped()


def test_an_event_that_is_not_taken_is_told_and_exits_1(
    live: Live, sandbox_name: str, make_customer: Maker, receiver: Receiver
) -> None:
    """It is not repeated: the receiver has had it. So it is with one that nobody has had at the end."""
    receiver.status = 500
    with listening(live.url, sandbox_name, "--forward-to", receiver.url) as running:
        running.line()
        make_customer()
        assert "500" == running.line().split()[2]
        receiver.status = 200
        make_customer()
        assert "200" == running.line().split()[2]
        assert 2 == len(receiver.requests)
        assert 1 == running.stopped()
    with listening(live.url, sandbox_name, "--forward-to", "http://127.0.0.1:9/") as running:
        running.line()
        make_customer()
        running.notice()
        assert 1 == running.stopped()


def test_events_are_shown_whole_and_for_programs(
    live: Live, sandbox_name: str, make_customer: Maker, receiver: Receiver
) -> None:
    with (
        listening(live.url, sandbox_name, "--print") as plain,
        listening(live.url, sandbox_name, "--print", "--json", "--forward-to", receiver.url) as programs,
    ):
        assert f"Events of the sandbox {sandbox_name}" == plain.line()
        ready = json.loads(programs.line())
        assert (sandbox_name, receiver.url) == (ready["sandbox"], ready["forward_to"])
        assert ready["signing_key"].startswith("whsec_")
        customer = make_customer()
        assert "customer.created" == plain.line().split()[1]
        event: Json = json.loads(plain.line())
        assert customer == event["data"]["customer"]
        told = json.loads(programs.line())
        assert (event, "customer.created", event["id"], 200, None) == tuple(
            told[name] for name in ("event", "type", "id", "status", "error")
        )
        assert json.loads(receiver.requests[0].body) == event
        assert [0, 0] == [plain.stopped(), programs.stopped()]


def test_a_reset_is_told_and_followed(
    live: Live, sandbox_name: str, control: httpx2.Client, make_customer: Maker
) -> None:
    with listening(live.url, sandbox_name, "--print", "--json") as running:
        running.line()
        assert 200 == control.post("/reset").status_code
        assert "reset" in running.notice()
        customer = make_customer()
        assert customer["id"] == json.loads(running.line())["event"]["data"]["customer"]["id"]


def test_what_cannot_be_followed_exits_2_and_says_why(live: Live) -> None:
    for args, says in (
        ((), "--print to show them"),
        (("--forward-to", "localhost:3000"), "is not an address"),
        (("--print", "--events", " , "), "names no type"),
        (
            ("--print", "--events", "order.pago", "--server", live.url),
            "no event is called order.pago. Known are *, api_key.*",
        ),
        (("--print", "--server", "http://127.0.0.1:9"), "no sandbox answers at http://127.0.0.1:9"),
    ):
        said = CliRunner().invoke(main, ["listen", *args])
        assert (2, True) == (said.exit_code, says in " ".join(said.output.split())), said.output


@pytest.mark.parametrize(
    ("verb", "code"),
    [(("listen", "--print"), 1), (("certify", "http://127.0.0.1:9/hook"), 2), (("requests", "list"), 1)],
    ids=["listen", "certify", "requests list"],
)
def test_a_mistyped_sandbox_is_refused_and_not_made(
    live: Live, sandbox_name: str, control: httpx2.Client, verb: tuple[str, ...], code: int
) -> None:
    assert 200 == control.get("/health").status_code
    for slip, hint in ((sandbox_name + "q", f" Did you mean {sandbox_name}?"), ("nowhere-at-all", "")):
        said = CliRunner().invoke(main, [*verb, "--server", live.url, "--sandbox", slip])
        told = f"Error: There is no sandbox {slip}.{hint} GET /s/{slip}/_sandbox/credentials creates it."
        assert (code, told) == (said.exit_code, said.output[: len(told)])
        assert live.app.sandboxes.find(slip) is None


def test_a_server_that_stops_waits_for_no_follower(sandbox_name: str) -> None:
    """Which gets its answer at once instead of being cut off."""
    command = [sys.executable, "-m", "stub_server", "--port", "0", "--log", "quiet"]
    with Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = next(line for line in server.stdout if line.startswith("curl ")).split("'")[1].partition("/v2")[0]
        answers: queue.Queue[int] = queue.Queue()
        follow = f"{url}/_sandbox/events?wait=60"
        threading.Thread(target=lambda: answers.put(httpx2.get(follow, timeout=60, verify=NO_TLS).status_code)).start()
        time.sleep(0.5)
        server.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        assert 0 == server.wait(PATIENCE)
        assert time.monotonic() - begun < 20
        assert 200 == answers.get(timeout=5)
