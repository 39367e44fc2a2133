"""Schemathesis, every check on, finds nothing in the control surface: faults and events, time, the journal."""

import subprocess
import sys
from pathlib import Path

import pytest

from ..support.live import Live

CONFIG = Path(__file__).with_name("control.toml")
OPERATIONS = {
    "faults and events": (
        "listFaults", "createFault", "deleteFaults", "getFault", "updateFault", "deleteFault", "listEvents",
        "triggerEvent",
    ),
    "time": (
        "listSteps", "rewindSandbox", "createSnapshot", "listSnapshots", "getSnapshot", "deleteSnapshot",
        "restoreSnapshot",
    ),
    "the journal": ("listRequests", "deleteRequests", "getRequest", "getRequestsHar", "verifyRequests"),
}  # fmt: skip
PHASES = {"faults and events": "examples,coverage,fuzzing", "time": "examples,coverage,fuzzing,stateful",
          "the journal": "examples,coverage,fuzzing"}  # fmt: skip


@pytest.mark.parametrize("what", OPERATIONS)
def test_every_answer_keeps_the_contract(live: Live, sandbox_name: str, what: str) -> None:
    """No 5xx, no undocumented status, header or body; nothing valid is refused, nothing invalid is taken."""
    contract = f"{live.url}/s/{sandbox_name}/_sandbox/openapi.json"
    command = [sys.executable, "-m", "schemathesis.cli", f"--config-file={CONFIG}", "run", contract]
    command += [f"--phases={PHASES[what]}", *(f"--include-operation-id={name}" for name in OPERATIONS[what])]
    done = subprocess.run(command, cwd=CONFIG.parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-20_000:]
