"""`make contract`: start a sandbox with a frozen clock, let schemathesis judge it, and count what got through.

Exit code 1 when a check fails, and when the run did not go deep: a run of refusals proves nothing.
"""

import argparse
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2

from .reach import Reach, findings, table
from .runner import run

NOW = "2026-11-20T14:32:05.123Z"
_PATIENCE = 60.0
PHASES = ("examples", "coverage", "fuzzing", "stateful")
# The controls that move money: what a payer, a bank or the end of a period does.
CONTROLS = "^/(orders|subscriptions)/"
# Chains along the links of the contract alone: those that schemathesis infers are three times as many.
DECLARED = "\n[phases.stateful.inference]\nalgorithms = []\n"


@contextmanager
def server(*module: str, more: Sequence[str] = ()) -> Iterator[str]:
    """A server of its own on a free port; its address. `module` is run in place of `stub_server`, `more` are flags."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", *(module or ("stub_server",)), "serve"]
    command += ["--port", str(port), "--seed", "42", "--now", NOW, *more]
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


def main() -> int:
    """Single requests, chains by all links and by the declared ones, the table and the floors."""
    parser = argparse.ArgumentParser(prog="make contract", description="Hold a running sandbox to its contract.")
    parser.add_argument("--seed", type=int, default=20261120, help="one seed is one choice of requests")
    parser.add_argument("-n", "--examples", type=int, default=25, help="made-up requests per operation")
    parser.add_argument("--scenarios", type=int, default=100, help="chains of linked requests, twice")
    asked = parser.parse_args()
    reach, runs = Reach(), []
    with server() as url, tempfile.TemporaryDirectory() as folder:
        contract = httpx2.get(f"{url}/openapi.json", timeout=30).raise_for_status().json()
        for name, phases, size, more in (
            ("single", ("examples", "coverage", "fuzzing"), asked.examples, ""),
            ("chains", ("stateful",), asked.scenarios, ""),
            ("declared", ("stateful",), asked.scenarios, DECLARED),
        ):
            report = Path(folder, f"{name}.ndjson")
            done = run(url, phases, report, f"--seed={asked.seed}", f"--max-examples={size}", more=more)
            print(done.output, flush=True)
            reach.read(report)
            runs.append(done)
        of_orders = f"--include-path-regex={CONTROLS}"
        sizes = f"--seed={asked.seed}", f"--max-examples={asked.examples}"
        done = run(url, PHASES, Path(folder, "controls.ndjson"), of_orders, *sizes, base="/_sandbox")
        print(done.output, flush=True)
        runs.append(done)
    print(table(contract, reach))
    found = list(findings(contract, reach, links=min(asked.scenarios // 2, 100)))
    print("", *found, sep="\n")
    return int(bool(found) or any(done.code for done in runs))


if __name__ == "__main__":
    sys.exit(main())
