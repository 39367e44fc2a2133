"""`make mutants`: plant the defects of the list, one at a time, and run the tests that execute the
line of each.

A defect that no test notices is shown at the end, and the exit code is 1: it wants a test, or a
reason in the list. The code is changed in a copy, never in the checkout.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from .planted import Planted, find
from .recording import Recorded, record

ROOT = Path(__file__).parents[2]
_LEFT = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "node_modules", "__pycache__", ".*_cache", ".hypothesis"
)
_BOUND = 300.0  # seconds: a defect is tried with the tests that took less than this together


def noticed(
    copy: Path, defect: Planted, recorded: Recorded, *, is_planted: bool = True
) -> str | None:
    """The first test that fails with the defect, None where none does; or without it, where all
    should pass.
    """
    file = copy / "stub_server" / defect.mutant.module
    source = file.read_text(encoding="utf-8")
    tests, seconds = recorded.tests_of(defect.mutant, source, _BOUND)
    if not tests:
        return None
    names = copy / "tests.txt"
    names.write_text("\n".join(tests), encoding="utf-8")
    # No plugins: to import those that are installed takes longer than most tests.
    quick = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--no-header",
        "-p",
        "no:cacheprovider",
        f"@{names}",
    ]
    if is_planted:
        file.write_text(defect.mutant.applied(source), encoding="utf-8")
    try:
        ran = subprocess.run(
            command,
            cwd=copy,
            env={**os.environ, **quick, "PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
            timeout=60 + 4 * seconds,
        )
    except subprocess.TimeoutExpired:
        return "it never ends"
    finally:
        file.write_text(source, encoding="utf-8")
    failed = [
        line for line in ran.stdout.splitlines() if line.startswith(("FAILED tests", "ERROR tests"))
    ]
    if failed:
        return failed[0].partition(" ")[2].partition(" - ")[0]
    return f"pytest answered {ran.returncode}" if ran.returncode else None


@click.command()
@click.option("--short", is_flag=True, help="Try the tests of `make test` alone.")
@click.option(
    "--only", type=int, multiple=True, help="Plant only the one with this number; may be repeated."
)
def main(short: bool, only: tuple[int, ...]) -> None:
    """Plant the listed defects, one at a time, and see whether the tests notice."""
    survivors = []
    excused = 0
    tried = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=_LEFT)
        found, lost = find(copy / "stub_server")
        for entry in lost:
            click.echo(f"no longer in the code: {entry}")
        recorded = record(copy, short)
        if failed := noticed(copy, found[0], recorded, is_planted=False):
            raise click.ClickException(
                f"Nothing is planted, and it is noticed: {failed}. Mend that first."
            )
        for defect in found:
            if only and defect.number not in only:
                continue
            tried += 1
            at = time.monotonic()
            killer = noticed(copy, defect, recorded) if defect.reason is None else None
            verdict = f"noticed by {killer}" if killer else "SURVIVED"
            verdict = verdict if defect.reason is None else f"not tried: {defect.reason}"
            click.echo(
                f"{defect.number:>4} {time.monotonic() - at:>5.0f} s  {defect.mutant}\n           "
                f" {verdict}"
            )
            excused += defect.reason is not None
            if killer is None and defect.reason is None:
                survivors.append(f"{defect.number:>4}  {defect.mutant}")
    counts = (
        f"{tried - excused - len(survivors)} noticed, {excused} with a reason, {len(survivors)} not"
        " noticed"
    )
    click.echo(f"\n{tried}: {counts}, {len(lost)} no longer in the code")
    for survivor in survivors:
        click.echo(survivor)
    sys.exit(bool(survivors or lost))


if __name__ == "__main__":
    main()
