"""Commands that are forked do what those do that are started, and can be waited for and killed as they can."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from ..support.forked import Popen, run
from ..support.live import NO_TLS

pytestmark = [
    pytest.mark.check,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="commands are forked on Linux alone"),
]
COMMAND = [sys.executable, "-m", "stub_server"]
WAITS = [*COMMAND, "serve", "--port", "0", "--scenario", "empty", "--log", "quiet"]


def is_forked(process: "subprocess.Popen[str]") -> bool:
    """Whether it was begun as the process that forks."""
    return b"tests.support.forked" in Path(f"/proc/{process.pid}/cmdline").read_bytes()


@pytest.mark.parametrize(
    ("args", "env"),
    [
        (["token", "--help"], {"COLUMNS": "60"}),
        (["srve"], {}),
        (["health"], {"STUB_HEALTH_SERVER": "http://127.0.0.1:9"}),
        (["serve", "--ready-file", "nowhere/ready.json"], {"STUB_PORT": "0"}),
    ],
    ids=lambda each: " ".join(each),
)
def test_a_forked_command_says_and_answers_what_a_started_one_does(
    tmp_path: Path, args: list[str], env: dict[str, str]
) -> None:
    forked = run([*COMMAND, *args], cwd=tmp_path, env=os.environ | env)
    begun = subprocess.run([*COMMAND, *args], cwd=tmp_path, env=os.environ | env, capture_output=True, text=True)
    assert (begun.returncode, begun.stdout, begun.stderr) == (forked.returncode, forked.stdout, forked.stderr)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_ends_by_a_signal_as_a_started_one_does(number: signal.Signals) -> None:
    ends = []
    for begin in (Popen, subprocess.Popen):
        with begin(WAITS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert (begin is Popen) == is_forked(process)
            assert process.stdout is not None
            url = next(line for line in process.stdout if line.startswith("curl ")).split("'")[1].partition("/v2")[0]
            httpx2.get(f"{url}/_sandbox/health", timeout=60, verify=NO_TLS).raise_for_status()  # it takes signals now
            process.send_signal(number)
            ends.append((process.communicate(timeout=60)[1], process.returncode))
    assert ends[0] == ends[1]


def test_what_python_reads_when_it_begins_begins_a_python() -> None:
    with Popen(WAITS, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONHASHSEED": "1"}) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        assert not is_forked(process)
        process.kill()
