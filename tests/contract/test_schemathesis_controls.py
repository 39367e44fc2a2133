"""Schemathesis finds nothing on the control surface of time: steps, rewinds and snapshots."""

import subprocess
import sys

from ..support.live import Live
from .runner import ROOT

PATHS = "^/(steps|rewind|snapshots)"


def test_every_answer_about_time_keeps_the_contract(live: Live) -> None:
    """Examples, limits, chance, and chains of linked requests, with every check on."""
    url = f"{live.url}/s/schemathesis-time/_sandbox/openapi.json"
    command = [sys.executable, "-m", "schemathesis.cli", "run", url, f"--include-path-regex={PATHS}", "--seed=20261120"]
    command += ["--phases=examples,coverage,fuzzing,stateful", "--max-examples=25", "--workers=1"]
    command += ["--generation-database=none"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-20_000:]
    assert "7 selected" in done.stdout
