"""`make mutants`: a seeded sample of planted defects, each tried against the tests that are likeliest to notice it.

A change that no test notices is shown at the end, and the exit code is 1: it wants a test, or a reason. Those that have
one (`reasons.yaml`) are counted apart and not tried. The code is changed in a copy, never in the checkout.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from .reasons import Reasons
from .relevant import stages
from .sampling import Mutant, sample

ROOT = Path(__file__).parents[2]
_LEFT = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "node_modules", "__pycache__", ".*_cache", ".hypothesis"
)
_PATIENCE = 300  # seconds for one group of tests: a change may make something wait for ever


def noticed(copy: Path, mutant: Mutant, groups: int) -> str | None:
    """The first test that fails with the change, None where none does."""
    file = copy / "stub_server" / mutant.module
    source = file.read_text(encoding="utf-8")
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(copy)}
    file.write_text(mutant.applied(source), encoding="utf-8")
    try:
        for tests in stages(copy / "tests", mutant.module)[:groups]:
            command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]
            try:
                ran = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True, timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                return "it never ends"
            if ran.returncode:
                told = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED tests", "ERROR tests"))]
                return told[0].partition(" ")[2].partition(" - ")[0] if told else f"pytest answered {ran.returncode}"
    finally:
        file.write_text(source, encoding="utf-8")
    return None


@click.command()
@click.option("--number", default=200, show_default=True, help="How many changes are tried.")
@click.option("--seed", default=1, show_default=True, help="The same seed tries the same changes.")
@click.option("--skip", default=0, help="Go on after so many of them.")
@click.option("--only", type=int, multiple=True, help="Only the one with this number; may be repeated.")
@click.option("--minutes", type=float, help="Begin no further one after so long.")
@click.option("--groups", default=5, show_default=True, help="How many groups of tests are asked; 1 is quick.")
def main(number: int, seed: int, skip: int, only: tuple[int, ...], minutes: float | None, groups: int) -> None:
    """Plant defects in engine, domain and operations, one at a time, and see whether the tests notice."""
    begun, reasons = time.monotonic(), Reasons.read()
    survivors, excused, tried = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=_LEFT)
        for place, mutant in enumerate(sample(copy / "stub_server", number, seed), 1):
            if place <= skip or (only and place not in only):
                continue
            if minutes is not None and time.monotonic() - begun > minutes * 60:
                break
            tried += 1
            at, reason = time.monotonic(), reasons.of(mutant)
            killer = noticed(copy, mutant, groups) if reason is None else None
            verdict = f"noticed by {killer}" if killer else "SURVIVED" if reason is None else f"not tried: {reason}"
            click.echo(f"{place:>4} {time.monotonic() - at:>5.0f} s  {mutant}\n            {verdict}")
            excused += reason is not None
            if killer is None and reason is None:
                survivors.append(f"{place:>4}  {mutant}")
    click.echo(
        f"\n{tried}: {tried - excused - len(survivors)} noticed, {excused} with a reason, {len(survivors)} not noticed"
    )
    for survivor in survivors:
        click.echo(survivor)
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
