"""The ready file, the stop of a server that nobody uses, and what the log says at the end."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from ..support.forked import Popen, run
from ..support.live import NO_TLS
from ..support.make import Json
from ..support.wire import connect

pytestmark = [pytest.mark.check, pytest.mark.turn]

PATIENCE = 30


@contextmanager
def served(ready: Path, *flags: str) -> Iterator[tuple["subprocess.Popen[str]", Json]]:
    """A server and what its ready file says, once there is one."""
    command = [sys.executable, "-m", "stub_server", "serve", "--port", "0", "--log", "json"]
    process = Popen(
        [*command, "--ready-file", str(ready), *flags],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + PATIENCE
        said: Json = {}
        # another server's file may be there until this one removes it
        while process.pid != said.get("pid"):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
            with suppress(FileNotFoundError):
                said = json.loads(ready.read_text(encoding="utf-8"))
        yield process, said
    finally:
        process.kill()
        process.communicate()


def last_line(process: "subprocess.Popen[str]") -> Json:
    """The last line of the log of a server that stops by itself."""
    _, said = process.communicate(timeout=PATIENCE)
    assert 0 == process.returncode, said
    found: Json = json.loads(said.splitlines()[-1])
    return found


def test_a_ready_file_has_what_a_first_request_needs_and_goes_with_the_server(
    tmp_path: Path,
) -> None:
    ready = tmp_path / "ready.json"
    ready.write_text('{"url": "http://127.0.0.1:9", "pid": 1}')  # of a server that was killed
    with served(ready) as (process, said):
        assert "0o600" == oct(ready.stat().st_mode & 0o777)
        with httpx2.Client(
            headers={"Authorization": f"Bearer {said['token']}"}, verify=NO_TLS
        ) as client:
            plan = client.get(f"{said['url']}/v2/plans/{said['sample']['planId']}")
            assert 200 == plan.status_code, plan.text
        process.send_signal(signal.SIGTERM)
        assert {"stopped": "SIGTERM"} == last_line(process)
        assert [] == [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            ["--ready-file", "nowhere/ready.json"],
            "No such file or directory. Name a file in a directory",
        ),
        (["--ready-file", "file/ready.json"], "Not a directory. Name a file in a directory"),
        (["--ready-file", "."], "is a directory"),
        (["--stop-after-idle", "0"], "0 is not in the range x>=1"),
        (["--stop-after-idle", "5", "--reload"], "Leave one of them out."),
        (["--stop-on-eof", "--reload"], "Leave one of them out."),
    ],
)
def test_what_cannot_be_done_is_refused_at_the_start(
    tmp_path: Path, flags: list[str], said: str
) -> None:
    (tmp_path / "file").touch()
    command = [
        sys.executable,
        "-m",
        "stub_server",
        "serve",
        "--port",
        "0",
        "--scenario",
        "empty",
        *flags,
    ]
    ended = run(command, cwd=tmp_path, timeout=PATIENCE)
    assert 2 == ended.returncode
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_server_that_nobody_uses_stops(tmp_path: Path) -> None:
    """Requests and open streams keep it, health checks do not."""
    ready = tmp_path / "ready.json"
    with served(ready, "--stop-after-idle", "2") as (process, said):
        url = said["url"]
        with httpx2.Client(verify=NO_TLS, timeout=PATIENCE) as client:
            for _ in range(5):
                time.sleep(0.6)
                assert 200 == client.get(f"{url}/_sandbox/clock").status_code
            with client.stream("GET", f"{url}/_sandbox/stream"):
                time.sleep(3)
                assert process.poll() is None
            closed = time.monotonic()
            while process.poll() is None:
                assert time.monotonic() < closed + PATIENCE
                try:
                    client.get(f"{url}/_sandbox/ready")
                except httpx2.TransportError:
                    break
                time.sleep(0.1)
        assert {"stopped": "idle"} == last_line(process)
        assert time.monotonic() - closed > 1.5
        assert not ready.exists()


def test_a_server_ends_with_its_standard_input_and_waits_for_no_client() -> None:
    """SIGTERM alone would wait two seconds for the rest of the body."""
    command = [
        sys.executable,
        "-m",
        "stub_server",
        "serve",
        "--port",
        "0",
        "--scenario",
        "empty",
        "--stop-on-eof",
    ]
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        found = next(
            match
            for line in process.stdout
            if (match := re.search(r"address +http://\S+:(\d+)", line))
        )
        with connect(int(found[1])) as half:
            half.sendall(
                b"POST /_sandbox/reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
            )
            process.stdin.close()
            assert 0 == process.wait(2)
