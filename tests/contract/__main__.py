"""`make contract`: start a sandbox with a frozen clock, let schemathesis judge it, and count what got through.

Exit code 1 when a check fails, and when an operation was never once accepted: a run of refusals proves nothing.
"""

import argparse
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from .runner import COLUMNS, Rates, never_accepted, operations_of, run, together

NOW = "2026-11-20T14:32:05.123Z"
_PATIENCE = 60.0


@contextmanager
def server() -> Iterator[str]:
    """A server of its own on a free port, answering; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "stub_server", "serve", "--port", str(port), "--seed", "42", "--now", NOW]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(url, process)
            yield url
        finally:
            process.terminate()
            process.wait(_PATIENCE)
            log.seek(0)
            defects = [line for line in log if line.startswith("defect in ")]
            print(*defects, sep="", end="")


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx2.get(f"{url}/_sandbox/health", timeout=5).status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.1)
    raise SystemExit("The sandbox did not start.")


def table(operations: list[str], rates: Rates) -> str:
    """How valid requests were answered, by operation."""
    width = max(map(len, operations))
    rows = [f"{'':{width}}" + "".join(f"{column:>13}" for column in COLUMNS)]
    for operation in operations:
        counts = rates.get(operation, {})
        rows.append(f"{operation:{width}}" + "".join(f"{counts.get(column, 0):>13}" for column in COLUMNS))
    return "\n".join(rows)


def main() -> int:
    """Both steps, the table and the floor."""
    parser = argparse.ArgumentParser(prog="make contract", description="Hold a running sandbox to its contract.")
    parser.add_argument("--seed", type=int, default=20261120, help="one seed is one choice of requests")
    parser.add_argument("-n", "--examples", type=int, default=25, help="made-up requests per operation")
    parser.add_argument("--scenarios", type=int, default=100, help="chains of linked requests")
    asked = parser.parse_args()
    with server() as url, tempfile.TemporaryDirectory() as folder:
        operations = operations_of(url)
        runs = []
        for phases, size in ((("examples", "coverage", "fuzzing"), asked.examples), (("stateful",), asked.scenarios)):
            report = Path(folder, f"{phases[0]}.ndjson")
            done = run(url, phases, report, f"--seed={asked.seed}", f"--max-examples={size}")
            print(done.output, flush=True)
            runs.append(done)
    rates = together(runs)
    print(table(operations, rates))
    untested = never_accepted(operations, rates)
    if untested:
        print(f"\nNever accepted, so not tested: {', '.join(untested)}")
    return int(bool(untested) or any(done.code for done in runs))


if __name__ == "__main__":
    sys.exit(main())
