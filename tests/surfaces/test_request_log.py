"""What the terminal tells of each request, and that nobody waits for it."""

import contextlib
import http.client
import io
import re
from threading import Event
from weakref import ref

import pytest

from stub_server.cli.request_log import AT_ONCE, RequestLog
from stub_server.engine.kept import Trace

from ..support.processes import Process

pytestmark = pytest.mark.check


def status(host: str, path: str, credential: str) -> int:
    """The status of one request; by a client that makes no other."""
    connection = http.client.HTTPConnection(host, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Authorization": f"Bearer {credential}"})
        return connection.getresponse().status


def test_a_line_says_what_was_asked_and_answered() -> None:
    """Time, method, world, path, status, operation, code, duration, warnings; a path
    stays on one line.
    """
    with Process("--log", "requests", "--now", "2026-11-20T14:32:05Z") as server:
        key, *_ = re.findall(r"sk_sandbox_\w+", server.banner)
        host = server.url.removeprefix("http://")
        assert 200 == status(host, "/v2/customers?limit=1&kind=x", key)
        assert 401 == status(host, "/api-keys/info", "x")
        assert 404 == status(host, "/v2/orders/x%0Ay", key)
        assert 200 == status(host, "/s/alice/_sandbox/credentials", key)
        told = server.stop().splitlines()[-5:]  # the start asked too
    lines = [re.sub(r"^\d\d:\d\d:\d\d\.\d\d\d|\d+\.\d ms", "…", line) for line in told]
    assert [
        "… GET    /v2/customers 200 listCustomers … warnings: unknown_query_parameter:kind",
        "… GET    /api-keys/info 401 getApiInfo invalid_token …",
        r"… GET    /v2/orders/x\ny 404 getOrder not_found …",
        "… GET    [alice] /_sandbox/credentials 200 getCredentials …",
        "Stopped by SIGTERM.",
    ] == [re.sub(r"(\d\d\d) (\w+) (\w+ )?…", r"\1 \2 \3…", line) for line in lines]


def test_a_flag_to_paste_is_one_word_of_a_shell() -> None:
    """A stranger chooses the origin."""
    with Process("--log", "requests") as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
        with contextlib.closing(connection):
            headers = {"Origin": "https://shop.example;reboot $(reboot)"}
            connection.request("GET", "/v2/plans", headers=headers)
            connection.getresponse().read()
        told = server.stop()
    assert "--cors-origin 'https://shop.example;reboot $(reboot)' allows it" in told


class Asked(Trace):
    """A request, which can be referred to weakly."""


def trace(number: int) -> Asked:
    """A request that was answered."""
    found = Asked(f"req_{number}", 0, "GET", f"/v2/{number}", b"", sandbox="default")
    found.status = 200
    return found


class Slow(io.StringIO):
    """A terminal that takes what it is given when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = Event()
        self.goes_on = Event()

    def write(self, text: str) -> int:
        """Wait, then write."""
        self.begun.set()
        assert self.goes_on.wait(20)
        return super().write(text)


def test_a_slow_terminal_is_not_waited_for() -> None:
    """While it writes, requests are taken as ever, and the memory for them is bounded."""
    stream = Slow()
    kept = list[ref[Trace]]()
    log = RequestLog("requests", stream).start()
    log(trace(0))
    assert stream.begun.wait(20)
    for number in range(3 * AT_ONCE):
        asked = trace(number)
        kept.append(ref(asked))
        log(asked)
    del asked
    assert "" == stream.getvalue()  # the thread is writing, and these have not waited for it
    assert AT_ONCE == sum(each() is not None for each in kept)
    stream.goes_on.set()
    log.close()
    assert f"… {2 * AT_ONCE} more requests" in stream.getvalue()
