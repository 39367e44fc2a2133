"""What takes long of a whole sandbox is done one after the other, and one of each sandbox waits in
the line: many of one tenant delay no other's.
"""

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from statistics import median

import httpx2
import pytest

from ..support.processes import Process

pytestmark = pytest.mark.check
MANY = 12
AT_ONCE = 60
ROUNDS = 40
Call = Callable[[httpx2.Client, int], httpx2.Response]
CALLS: dict[str, Call] = {
    "reset": lambda control, number: control.post("/reset", json={"seed": number}),
    "export": lambda control, _: control.get("/export"),
    "snapshot": lambda control, number: control.post("/snapshots", json={"name": f"n{number}"}),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One with a store, to which each of these calls writes."""
    with Process("--store", str(tmp_path_factory.mktemp("store"))) as process:
        yield process


@pytest.mark.promise("others-served-beside-jobs")
@pytest.mark.parametrize(
    ("many", "own"),
    [("reset", "reset"), ("export", "export"), ("export", "snapshot"), ("snapshot", "snapshot")],
)
def test_many_of_one_sandbox_delay_no_other(server: Process, many: str, own: str) -> None:
    done = []

    def call(number: int) -> None:
        with server.control("many") as control:
            answer = CALLS[many](control, number)
        assert answer.status_code in (200, 201), answer.text
        done.append(number)

    with server.control("many") as control, server.control("own") as other:
        for client in (control, other):
            client.get("/credentials").raise_for_status()  # which creates it
        threads = [threading.Thread(target=call, args=(MANY + each,)) for each in range(MANY)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        before = len(done)
        answer = CALLS[own](other, 1000)
        between = len(done) - before
        for thread in threads:
            thread.join()
    assert answer.status_code in (200, 201), answer.text
    assert between <= 4, done


@pytest.mark.promise("others-served-beside-jobs")
def test_others_are_served_between_two_restores_of_one_sandbox() -> None:
    """Each is short; all that came together were done in one turn of the loop."""
    head = b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    restore = b"POST /s/many/_sandbox/snapshots/one/restore" + head
    between = list[int]()
    done = 0
    with Process() as server, ExitStack() as stack:
        with server.control("many") as control:
            control.get("/credentials").raise_for_status()
            control.post("/snapshots", json={"name": "one"}).raise_for_status()
        links = []
        for _ in range(AT_ONCE + 1):
            link = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            link.sendall(b"GET /_sandbox/health" + head)
            assert link.recv(65_536).startswith(b"HTTP/1.1 200")
            links.append(link)
        own = links[-1]
        for link in links[:-1]:
            link.sendall(restore)
        own.sendall(b"GET /_sandbox/clock" + head)
        while len(between) < ROUNDS:
            for link in select.select(links, [], [])[0]:
                assert link.recv(65_536).startswith(b"HTTP/1.1 200")
                if link is own:
                    between.append(done)
                    done = 0
                    own.sendall(b"GET /_sandbox/clock" + head)
                else:
                    done += 1
                    link.sendall(restore)
    assert median(between) < AT_ONCE / 4, between
