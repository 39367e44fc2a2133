"""Schemathesis, every check on, finds nothing in the operations about faults and events of the control surface."""

import subprocess
import sys
from pathlib import Path

from ..support.live import Live

CONFIG = Path(__file__).with_name("control.toml")
OPERATIONS = (
    "listFaults", "createFault", "deleteFaults", "getFault", "updateFault", "deleteFault", "listEvents", "triggerEvent",
)  # fmt: skip


def test_every_answer_about_faults_and_events_keeps_the_contract(live: Live, sandbox_name: str) -> None:
    """No 5xx, no undocumented status, header or body; nothing valid is refused, nothing invalid is taken."""
    contract = f"{live.url}/s/{sandbox_name}/_sandbox/openapi.json"
    command = [sys.executable, "-m", "schemathesis.cli", f"--config-file={CONFIG}", "run", contract]
    command += ["--phases=examples,coverage,fuzzing", *(f"--include-operation-id={name}" for name in OPERATIONS)]
    done = subprocess.run(command, cwd=CONFIG.parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-20_000:]
