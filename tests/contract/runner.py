"""Schemathesis against a running server: one run, what it found, and what of it reached more than a refusal."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from .pack import PACK

ROOT = Path(__file__).parents[2]
HOOKS = Path(__file__).with_name("hooks.py")
ANSWERS = {200: "accepted", 201: "accepted", 409: "conflicts", 404: "unreachable", 400: "rejected", 422: "rejected"}
COLUMNS = ("accepted", "conflicts", "unreachable", "rejected")

Rates = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: schemathesis's exit code, its output, and how valid requests were answered, by operation."""

    code: int
    output: str
    rates: Rates


def operations_of(url: str) -> list[str]:
    """Every operation of the contract that the server at `url` serves, as `GET /v2/customers`."""
    paths = httpx2.get(f"{url}/openapi.json", timeout=30).raise_for_status().json()["paths"]
    methods = ("get", "put", "post", "delete", "patch")
    return [f"{method.upper()} {path}" for path, item in paths.items() for method in methods if method in item]


def run(url: str, phases: Sequence[str], report: Path, *options: str, path: str = "/openapi.json") -> Run:
    """Judge the server at `url`. `report` is the file that takes the events of the run; `path` is the contract's."""
    config = report.with_suffix(".toml")
    users = (PACK / "schemathesis.toml").read_text()
    config.write_text(users.replace('hooks = "sandbox_hooks"', f'hooks = "{HOOKS}"'))
    command = [sys.executable, "-m", "schemathesis.cli", f"--config-file={config}", "run", f"{url}{path}"]
    command += [f"--phases={','.join(phases)}", "--report=ndjson", f"--report-ndjson-path={report}", *options]
    environment = os.environ | {"SANDBOX_URL": url, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return Run(done.returncode, done.stdout + done.stderr, _rates(report) if report.exists() else {})


def together(runs: Sequence[Run]) -> Rates:
    """The answers of several runs, added up."""
    total: Rates = {}
    for one in runs:
        for operation, counts in one.rates.items():
            into = total.setdefault(operation, dict.fromkeys(COLUMNS, 0))
            for column, count in counts.items():
                into[column] += count
    return total


def never_accepted(operations: Sequence[str], rates: Rates) -> list[str]:
    """The operations that no request got through to: whatever they answer, nothing of it was tested."""
    return [operation for operation in operations if not rates.get(operation, {}).get("accepted")]


def _rates(report: Path) -> Rates:
    rates: Rates = {}
    for operation, status in _valid(report):
        column = ANSWERS.get(status)
        if column is not None:
            rates.setdefault(operation, dict.fromkeys(COLUMNS, 0))[column] += 1
    return rates


def _valid(report: Path) -> Iterator[tuple[str, int]]:
    """Operation and status of every request that was meant to be valid."""
    with report.open() as lines:
        for line in lines:
            finished: Any = json.loads(line).get("ScenarioFinished")
            recorder = (finished or {}).get("recorder") or {}
            for ident, entry in recorder.get("cases", {}).items():
                case = entry["value"]
                response = recorder["interactions"].get(ident, {}).get("response")
                meta = case.get("meta")
                if response is not None and meta is not None and meta["generation"]["mode"] == "positive":
                    yield f"{case['method']} {case['path']}", response["status_code"]
