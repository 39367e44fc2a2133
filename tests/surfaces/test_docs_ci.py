"""docs/ci.md and the workflow of `init`: the steps that start, await and record a sandbox are run as they stand."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.check

PAGE = (Path(__file__).parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")
WORKFLOW = (Path(__file__).parents[2] / "fixtures/init/github-actions/.github/workflows/sandbox-tests.yml").read_text(
    encoding="utf-8"
)


def test_the_steps_of_the_workflow_leave_a_recording_that_replays(tmp_path: Path) -> None:
    steps = [step["run"] for step in yaml.safe_load(WORKFLOW)["jobs"]["test"]["steps"] if "run" in step]
    installs, serves, waits, tests, records = steps
    assert installs.startswith("pip install ")
    assert tests == "npm ci && npm test"
    assert [] == [step for step in steps if f"\n{step}" not in PAGE]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    env = {name: value for name, value in os.environ.items() if not name.startswith("STUB_")} | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "STUB_PORT": port,
        "STUB_SERVER": f"http://127.0.0.1:{port}",
    }
    script = f"{serves}\ntrap 'kill $!' EXIT\n{waits}\nstub-server orders list\n{records}\n"
    ran = subprocess.run(["bash", "-euc", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert '"status":200' in (tmp_path / "sandbox.log").read_text(encoding="utf-8")
    replays = re.findall(r"^    (stub-server replay .*)$", PAGE, re.MULTILINE)
    assert len(replays) == 1
    for replay in replays:
        done = subprocess.run(replay.split(), cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
