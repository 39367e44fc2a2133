"""The ready file, the stop of a server that nobody uses, and what the log says at the end."""

import json
import signal
import socket
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..support.forked import run
from ..support.live import NO_TLS
from ..support.make import Json, typed
from ..support.processes import ready
from ..support.wire import connect

pytestmark = [pytest.mark.check, pytest.mark.turn]

PATIENCE = 30


COMMAND = (sys.executable, "-m", "stub_server", "serve", "--port", "0", "--log", "json")


def served(
    file: Path, *flags: str, **options: Any
) -> AbstractContextManager[tuple["subprocess.Popen[str]", Json]]:
    """A server and what its ready file says."""
    return ready(file, *COMMAND, *flags, stdout=subprocess.DEVNULL, **options)


def last_line(process: "subprocess.Popen[str]") -> Json:
    """The last line of the log of a server that stops by itself."""
    _, said = process.communicate(timeout=PATIENCE)
    assert 0 == process.returncode, said
    return typed(dict, json.loads(said.splitlines()[-1]))


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
    ],
)
def test_what_cannot_be_done_is_refused_at_the_start(
    tmp_path: Path, flags: list[str], said: str
) -> None:
    (tmp_path / "file").touch()
    ended = run([*COMMAND, *flags], cwd=tmp_path, timeout=PATIENCE)
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


def test_a_server_ends_with_its_standard_input_and_waits_for_no_client(tmp_path: Path) -> None:
    """SIGTERM alone would wait two seconds for the rest of the body."""
    flags = ("--scenario", "empty", "--stop-on-eof")
    with served(tmp_path / "ready.json", *flags, stdin=subprocess.PIPE) as (process, said):
        with connect(int(said["url"].rpartition(":")[2])) as half:
            half.sendall(
                b"POST /_sandbox/reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
            )
            process.communicate(timeout=2)  # closes its input
        assert 0 == process.returncode


def test_a_server_that_accepts_and_never_answers_is_waited_for_until_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        waited = run(
            [sys.executable, "-m", "stub_server", "wait", url, "--timeout", "0.5"],
            timeout=PATIENCE,
        )
    assert (2, True) == (waited.returncode, "no sandbox answers" in waited.stderr), waited
