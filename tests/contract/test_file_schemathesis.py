"""Schemathesis, every check on, finds nothing in the operations about files of the control surface."""

import os
import subprocess
import sys
from pathlib import Path

from ..support.live import Live

HERE = Path(__file__).parent
OPERATIONS = ("exportSandbox", "importSandbox")


def test_every_answer_about_files_keeps_the_contract(live: Live, sandbox_name: str, tmp_path: Path) -> None:
    """No 5xx, no undocumented status, header or body; nothing valid is refused, nothing invalid is taken."""
    config = tmp_path / "schemathesis.toml"
    config.write_text(f'hooks = "{HERE / "file_hooks.py"}"\n' + (HERE / "control.toml").read_text())
    base = f"{live.url}/s/{sandbox_name}"
    command = [sys.executable, "-m", "schemathesis.cli", f"--config-file={config}", "run"]
    command += [f"{base}/_sandbox/openapi.json", "--phases=examples,coverage,fuzzing"]
    command += [f"--include-operation-id={name}" for name in OPERATIONS]
    environment = os.environ | {"SANDBOX_URL": base, "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run(command, cwd=HERE.parents[1], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-20_000:]
