"""What the terminal tells of each request, and that nobody waits for it."""

import contextlib
import http.client
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from threading import Event
from weakref import ref

import pytest

from stub_server.cli.request_log import AT_ONCE, RequestLog
from stub_server.engine.trace import Trace

from ..support.forked import Popen

pytestmark = pytest.mark.check


def status(host: str, path: str, credential: str) -> int:
    """The status of one request; by a client that makes no other."""
    connection = http.client.HTTPConnection(host, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", path, headers={"Authorization": f"Bearer {credential}"})
        return connection.getresponse().status


def four_requests(host: str, key: str) -> None:
    """Two of them are refused."""
    assert 200 == status(host, "/v2/customers?limit=1&kind=x", key)
    assert 401 == status(host, "/api-keys/info", "x")
    assert 404 == status(host, "/v2/orders/x%0Ay", key)
    assert 200 == status(host, "/s/alice/_sandbox/credentials", key)


def told(log: str, ask: Callable[[str, str], None] = four_requests) -> list[str]:
    """The lines that a server with `--log` writes of requests."""
    env = {**os.environ, "STUB_PORT": "0", "STUB_LOG": log, "STUB_NOW": "2026-11-20T14:32:05Z"}
    process = Popen(
        [sys.executable, "-m", "stub_server"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        call = next(line for line in process.stdout if line.startswith("curl "))
        url, key = re.findall(r"http://[0-9.:]+|sk_sandbox_\w+", call)
        host = url.removeprefix("http://")
        ask(host, key)
    finally:
        process.send_signal(signal.SIGINT)
        assert 0 == process.wait(20)
        process.stdout.close()
    with process.stderr:
        return process.stderr.read().splitlines()


def test_a_line_says_what_was_asked_and_answered() -> None:
    """Time, method, world, path, status, operation, code, duration, warnings; a path
    stays on one line.
    """
    lines = [re.sub(r"^\d\d:\d\d:\d\d\.\d\d\d|\d+\.\d ms", "…", line) for line in told("requests")]
    assert [
        "… GET    /v2/customers 200 listCustomers … warnings: unknown_query_parameter:kind",
        "… GET    /api-keys/info 401 getApiInfo invalid_token …",
        r"… GET    /v2/orders/x\ny 404 getOrder not_found …",
        "… GET    [alice] /_sandbox/credentials 200 getCredentials …",
        "Stopped by SIGINT.",
    ] == [re.sub(r"(\d\d\d) (\w+) (\w+ )?…", r"\1 \2 \3…", line) for line in lines]


def trace(number: int) -> Trace:
    """A request that was answered."""
    found = Trace(f"req_{number}", 0, "GET", f"/v2/{number}", b"", sandbox="default")
    found.status = 200
    return found


class Warned(list[str]):
    """The warnings of a request, which can be referred to weakly."""


class Slow(io.StringIO):
    """A terminal that takes what it is given when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.goes_on = Event(), Event()

    def write(self, text: str) -> int:
        """Wait, then write."""
        self.begun.set()
        assert self.goes_on.wait(20)
        return super().write(text)


@pytest.mark.parametrize("count", [AT_ONCE, AT_ONCE + 1, 10 * AT_ONCE])
def test_too_many_lines_are_counted_instead_of_written(count: int) -> None:
    stream = io.StringIO()
    log = RequestLog("requests", stream)
    for number in range(count):
        log(trace(number), ())
    log.flush()
    lines = stream.getvalue().splitlines()
    assert f"/v2/{AT_ONCE - 1} 200" in lines[AT_ONCE - 1]
    if count == AT_ONCE:
        assert AT_ONCE == len(lines)
    else:
        assert (AT_ONCE + 1, f"… {count - AT_ONCE} more requests") == (len(lines), lines[-1])
    log.flush()
    assert lines == stream.getvalue().splitlines()


def test_a_slow_terminal_is_not_waited_for() -> None:
    """While it writes, requests are taken as ever, and the memory for them is bounded."""
    stream, kept = Slow(), list[ref[Warned]]()
    log = RequestLog("requests", stream).start()
    log(trace(0), ())
    assert stream.begun.wait(20)
    for number in range(3 * AT_ONCE):
        warned = Warned()
        kept.append(ref(warned))
        log(trace(number), warned)
    del warned
    assert "" == stream.getvalue()  # the thread is writing, and these have not waited for it
    assert AT_ONCE == sum(each() is not None for each in kept)
    stream.goes_on.set()
    log.close()
    assert f"… {2 * AT_ONCE} more requests" in stream.getvalue()
