"""What the terminal tells of each request, and that nobody waits for it."""

import contextlib
import http.client
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from weakref import ref

import httpx2
import pytest

from stub_server.engine.journal import Trace
from stub_server.request_log import AT_ONCE, RequestLog

from ..support.forked import Popen
from ..support.live import NO_TLS
from ..support.make import created, order_body

pytestmark = pytest.mark.check

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
KINDS = {str: "string", int: "integer", float: "number", type(None): "null", list: "array of strings"}


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
        [sys.executable, "-m", "stub_server"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
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
    """Time, method, world, path, status, operation, code, duration, warnings; a path stays on one line."""
    lines = [re.sub(r"^\d\d:\d\d:\d\d\.\d\d\d|\d+\.\d ms", "…", line) for line in told("requests")]
    assert [
        "… GET    /v2/customers 200 listCustomers … warnings: unknown_query_parameter:kind",
        "… GET    /api-keys/info 401 getApiInfo invalid_token …",
        r"… GET    /v2/orders/x\ny 404 getOrder not_found …",
        "… GET    [alice] /_sandbox/credentials 200 getCredentials …",
        "Stopped by SIGINT.",
    ] == [re.sub(r"(\d\d\d) (\w+) (\w+ )?…", r"\1 \2 \3…", line) for line in lines]


def test_lines_for_programs_are_json() -> None:
    *lines, last = [json.loads(line) for line in told("json")]
    assert {"stopped": "SIGINT"} == last
    assert [200, 401, 404, 200] == [line["status"] for line in lines]
    assert {"time", "request_id", "sandbox", "method", "path", "operation", "status", "code", "ms", "warnings"} == set(
        lines[0]
    )
    assert ["default", "default", "default", "alice"] == [line["sandbox"] for line in lines]


def test_the_page_lists_the_members_of_json_lines() -> None:
    def ask(host: str, key: str) -> None:
        four_requests(host, key)
        sample = httpx2.get(f"http://{host}/_sandbox/credentials", verify=NO_TLS).json()["sample"]
        body = order_body(sample["projectId"], sample["planId"])
        headers = {"Authorization": f"Bearer {key}", "Origin": "http://shop.example"}
        created(httpx2.post(f"http://{host}/v2/orders/pix", json=body, headers=headers, verify=NO_TLS))

    *lines, last = [json.loads(line) for line in told("json", ask)]
    section = PAGE.partition("\n## The log\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| ([a-z ]+?)(, not always)? \|", section, re.MULTILINE)
    kinds, optional = {name: kind for name, kind, _ in rows}, {name for name, _, some in rows if some}
    assert [*kinds] == [*lines[-1], "dropped", *last]
    for line in lines:
        assert line.keys() | optional == lines[-1].keys()
        assert [] == [name for name, value in line.items() if KINDS[type(value)] not in kinds[name].split(" or ")]


def test_a_quiet_server_says_nothing() -> None:
    assert [] == told("quiet")


def trace(number: int) -> Trace:
    """A request that was answered."""
    found = Trace(f"req_{number}", 0, "GET", f"/v2/{number}", b"", "default")
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


def test_running_installs_less_than_testing() -> None:
    """`make run` brings what the server needs; `make test` adds its own tools."""
    env = {**os.environ, "MAKEFLAGS": ""}
    commands = {
        goal: subprocess.run(
            ["make", "-nB", goal], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=True
        ).stdout
        for goal in ("run", "test")
    }
    assert {"run": False, "test": True} == {goal: ".[dev]" in text for goal, text in commands.items()}
