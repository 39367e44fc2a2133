"""`make contract`: start a sandbox with a frozen clock, let schemathesis judge it, and count what
got through.

Then `stub-server verify` judges one whose clock runs. Exit code 1 when a check fails or verify
finds a divergence, and when the run did not go deep: a run of refusals proves nothing.
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

from ..support.forked import Popen
from ..verify.runs import departed, verify
from .chains import follow
from .controls import FORK
from .reach import Reach, findings, table
from .runner import Run, run

NOW = "2026-11-20T14:32:05.123Z"
_PATIENCE = 60.0
# Where a contract is, and what its runs have beside the settings that users are given. Controls act
# on the fork that
# the hooks make, whatever becomes of its keys.
CONTRACTS = {
    "api": ("", ""),
    "control": (f"/s/{FORK}/_sandbox", Path(__file__).with_name("control.toml").read_text()),
}


@contextmanager
def server(*module: str, now: str = NOW, more: Sequence[str] = ()) -> Iterator[str]:
    """A server of its own on a free port; its address.

    `module` is run in place of `stub_server`. The clock stands at `now`, or runs if that is empty.
    `more` are flags.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", *(module or ("stub_server",)), "serve"]
    command += ["--port", str(port), "--seed", "42", *(("--now", now) if now else ()), *more]
    with tempfile.TemporaryFile("w+") as log:
        process = Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(url, process)
            yield url
        finally:
            process.terminate()
            process.wait(_PATIENCE)
            log.seek(0)
            defects = [line for line in log if line.startswith("defect in ")]
            print(*defects, sep="", end="")


def _wait(url: str, process: Popen) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx2.get(f"{url}/_sandbox/health", timeout=5).status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.1)
    raise SystemExit("The sandbox did not start.")


def main() -> int:
    """Both contracts: single requests, chains by all links and by the declared ones, the table and
    the floors.

    Of the API also what verify finds.
    """
    parser = argparse.ArgumentParser(
        prog="make contract", description="Hold a running sandbox to its contracts."
    )
    parser.add_argument(
        "--seed", type=int, default=20261120, help="one seed is one choice of requests"
    )
    parser.add_argument(
        "-n", "--examples", type=int, default=25, help="made-up requests per operation"
    )
    parser.add_argument(
        "--scenarios",
        type=int,
        default=100,
        help="chains of linked requests, for each set of links",
    )
    parser.add_argument(
        "--of", choices=CONTRACTS, nargs="*", default=list(CONTRACTS), help="which contract"
    )
    asked = parser.parse_args()
    results = [judge(*CONTRACTS[name], asked) for name in asked.of]
    if "api" in asked.of:
        results.append(conforms())
    return int(not all(results))


def conforms() -> bool:
    """Show what `stub-server verify --write --charges` finds; whether that is nothing,
    and it went deep.
    """
    with server(now="") as url:  # verify compares how far the clocks go on
        outcome = verify(url, "--report=text")
    wrong = departed(outcome)
    sent = outcome.report.get("requests")
    reached = outcome.report.get("coverage")
    line = (
        f"verify: no divergence in {sent} requests, which reached {reached} %, in"
        f" {outcome.seconds:.0f} s."
    )
    print(*([outcome.output, *wrong] if wrong else [line]), "", sep="\n", flush=True)
    return not wrong


def judge(base: str, settings: str, asked: argparse.Namespace) -> bool:
    """Show how one contract is kept; whether a run found nothing and went deep."""
    reach, seed, started, is_good = Reach(), f"--seed={asked.seed}", time.monotonic(), True
    with server() as url, tempfile.TemporaryDirectory() as made:
        contract = httpx2.get(f"{url}{base}/openapi.json", timeout=30).raise_for_status().json()
        folder = Path(made)

        def runs() -> Iterator[Run]:
            for name, phases, size in (
                ("single", ("examples", "coverage", "fuzzing"), asked.examples),
                ("chains", ("stateful",), asked.scenarios),
            ):
                report = folder / f"{name}.ndjson"
                yield run(
                    url, phases, report, seed, f"--max-examples={size}", base=base, more=settings
                )
                reach.read(report)
            sizes = asked.seed, asked.scenarios
            yield from follow(url, folder, contract, reach, *sizes, base=base, more=settings)

        for done in runs():
            print(done.output, flush=True)
            is_good = is_good and done.code == 0
    print(table(contract, reach))
    found = list(findings(contract, reach))
    requests = sum(counts.total() for counts in reach.all.values())
    print(
        "",
        f"{requests} requests in {time.monotonic() - started:.0f} s.",
        *found,
        "",
        sep="\n",
        flush=True,
    )
    return is_good and not found


if __name__ == "__main__":
    sys.exit(main())
