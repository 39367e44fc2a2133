"""`python -m tests.benchmarks.kit`: what the fixture `sandbox` costs each of 200 tests, beyond their own calls.

Two workers of pytest-xdist, each with a server. The first test of a worker starts its server and is shown apart.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean, median, quantiles

import click

PROMISED = 12  # ms
TESTS = """
import pytest

@pytest.mark.parametrize("number", range({tests}))
def test_a_call(sandbox, number):
    assert 200 == sandbox.api.get("/v2/plans?limit=1").status_code
"""
CONFTEST = """
import json, os

def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" not in os.environ:
        with open("phases", "a") as out:
            out.write(json.dumps([report.nodeid, report.worker_id, report.when, report.duration]) + "\\n")
"""


@click.command(context_settings={"show_default": True})
@click.option("--tests", default=200, help="Number of tests.")
@click.option("--workers", default=2, help="Number of workers.")
def main(tests: int, workers: int) -> None:
    """Run tests with a sandbox each, and show the milliseconds of its set-up and deletion."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_it.py").write_text(TESTS.format(tests=tests), encoding="utf-8")
        (folder / "conftest.py").write_text(CONFTEST, encoding="utf-8")
        began = time.perf_counter()
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "-p", "no:cacheprovider"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        whole = time.perf_counter() - began
        phases = [json.loads(line) for line in (folder / "phases").read_text(encoding="utf-8").splitlines()]
    first = {worker: test for test, worker, when, _ in reversed(phases) if when == "setup"}
    last = {worker: test for test, worker, when, _ in phases if when == "teardown"}
    apart = {*first.values(), *last.values()}  # they start and stop the servers
    costs = dict[str, float]()
    for test, _, when, seconds in phases:
        if when != "call" and test not in apart:
            costs[test] = costs.get(test, 0) + 1000 * seconds
    calls = [1000 * seconds for test, _, when, seconds in phases if when == "call" and test not in apart]
    starts = [seconds for test, _, when, seconds in phases if when == "setup" and test in first.values()]
    click.echo(f"{len(costs)} tests on {workers} workers, load {os.getloadavg()[0]:.1f}, {whole:.1f} s in all")
    click.echo(f"the first test of a worker waits {mean(starts):.2f} s for its server")
    shown = [median(costs.values()), mean(costs.values()), quantiles(costs.values(), n=20)[-1]]
    click.echo("fixture: median {:.1f} ms, mean {:.1f} ms, 95 % below {:.1f} ms".format(*shown))
    click.echo(f"call of the test itself: median {median(calls):.1f} ms")
    if shown[1] > PROMISED:
        raise click.ClickException(f"The fixture costs more than {PROMISED} ms a test.")


if __name__ == "__main__":
    main()
