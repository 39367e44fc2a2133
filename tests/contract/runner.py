"""Schemathesis against a running server: one run and what it found."""

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .pack import PACK

ROOT = Path(__file__).parents[2]
HOOKS = Path(__file__).with_name("hooks.py")


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: schemathesis's exit code, its output, and the file of its events."""

    code: int
    output: str
    report: Path


def including(ids: Iterable[str]) -> list[str]:
    """The options of a run that asks some operations alone."""
    return [f"--include-operation-id={ident}" for ident in ids]


def run(
    url: str,
    phases: Sequence[str],
    report: Path,
    *options: str,
    base: str = "",
    more: str = "",
    token: str = "",
) -> Run:
    """Judge the server at `url`. `report` is the file that takes the events of the run; the
    contract is below `base`.

    It runs by the files that users are given, with the hooks of `make contract`; `more` is added to
    their settings. With a `token` no forks are made: everything happens in the sandbox at `url`.
    """
    config = report.with_suffix(".toml")
    users = (
        (PACK / "schemathesis.toml")
        .read_text()
        .replace('hooks = "sandbox_hooks"', f'hooks = "{HOOKS}"')
    )
    if base:  # controls may be asked to wait for a minute
        users = users.replace("request-timeout = 15.0", "request-timeout = 65.0")
    config.write_text(users + more)
    command = [
        sys.executable,
        "-m",
        "schemathesis.cli",
        f"--config-file={config}",
        "run",
        f"{url}{base}/openapi.json",
    ]
    command += [
        f"--phases={','.join(phases)}",
        "--report=ndjson",
        f"--report-ndjson-path={report}",
        *options,
    ]
    command += [f"--url={url}{base}"] if base else []
    environment = os.environ | {"SANDBOX_URL": url, "SANDBOX_TOKEN": token, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    return Run(done.returncode, done.stdout + done.stderr, report)
