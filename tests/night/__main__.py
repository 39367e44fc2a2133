"""`make night`: everything that takes long, one after the other, and one page that says what it
found.

What each program printed is beside the page, in `build/night/`.
"""

import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from ..support.commit import commit

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "night"
PAGE = FOLDER / "night.md"
SHOWN = 40  # lines of what failed that the page repeats


@dataclass(frozen=True, slots=True)
class Part:
    """A program of the night; `shows` is how many of its last lines the page repeats
    although it passed.
    """

    name: str
    what: str
    command: Sequence[str]
    shows: int = 1


def module(name: str, *arguments: str) -> list[str]:
    """The command of a module of the tests."""
    return [sys.executable, "-m", name, *arguments]


PYTEST = module("pytest", "-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder", "--night")
PARTS = (
    Part("tests", "every test, with all cases of every matrix, and the ledger", PYTEST),
    Part("stores", "all journeys in SQLite", [*PYTEST, "--store", "sqlite", "tests/journeys"]),
    Part(
        "postgresql",
        "all journeys in PostgreSQL",
        [*PYTEST, "--store", "postgresql", "tests/journeys"],
    ),
    Part(
        "oldest",
        "the short run with the oldest libraries that are allowed",
        module("tests.night.oldest"),
    ),
    Part("contract", "schemathesis at its deepest, and verify", module("tests.contract"), shows=30),
    Part(
        "judges",
        "redocly, prism, specmatic and client generators",
        module("tests.judges"),
        shows=15,
    ),
    Part("model", "three hundred random lives", module("tests.properties"), shows=12),
    Part("crash", "servers that are killed", module("tests.crash"), shows=15),
    Part("soak", "ten minutes of everything at once", module("tests.soak"), shows=30),
    Part(
        "neighbours",
        "what clients feel of heavy work in another sandbox",
        module("tests.soak.neighbours"),
        shows=30,
    ),
    Part("mutants", "planted defects that tests notice", module("tests.mutants"), shows=10),
    Part(
        "verify-mutants",
        "planted defects that verify notices",
        module("tests.verify", "--all"),
        shows=10,
    ),
    Part(
        "bench",
        "speed beside stock Connexion and bare Starlette",
        module("tests.benchmarks"),
        shows=80,
    ),
    Part("size", "how much there is to understand", module("tests.size", "--total"), shows=6),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """How a part ended: its exit code, seconds, and the lines that it printed."""

    part: Part
    code: int
    seconds: float
    lines: Sequence[str]

    @property
    def verdict(self) -> str:
        """In a word for the table."""
        return "passed" if self.code == 0 else f"**failed** (exit code {self.code})"

    @property
    def shown(self) -> Sequence[str]:
        """The lines that the page repeats."""
        return self.lines[-(self.part.shows if self.code == 0 else max(SHOWN, self.part.shows)) :]


def run(part: Part) -> Ran:
    """Run a part; what it prints is also a file."""
    began = time.monotonic()
    ended = subprocess.run(
        part.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    text = ended.stdout.decode("utf-8", "replace")
    (FOLDER / f"{part.name}.txt").write_text(text, encoding="utf-8")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return Ran(part, ended.returncode, time.monotonic() - began, lines)


def page(ran: Sequence[Ran], began: datetime) -> str:
    """The page: a table of what ran, then the last lines of each part."""
    failed = [each.part.name for each in ran if each.code]
    lines = [
        f"# The night of {began:%Y-%m-%d}",
        "",
        f"Commit {commit()[:12]}, Python {platform.python_version()} on {platform.system()}, begun"
        f" {began:%H:%M} UTC. "
        + (f"Failed: {', '.join(failed)}." if failed else "Everything passed."),
        "",
        "| Part | What it does | Result | Minutes |",
        "|---|---|---|---:|",
    ]
    lines += [
        f"| {each.part.name} | {each.part.what} | {each.verdict} | {each.seconds / 60:.1f} |"
        for each in ran
    ]
    for each in ran:
        lines += ["", f"## {each.part.name}", "", "```text", *each.shown, "```"]
    return "\n".join([*lines, ""])


@click.command()
@click.argument(
    "names", nargs=-1, type=click.Choice([part.name for part in PARTS]), metavar="[PART]..."
)
def main(names: Sequence[str]) -> None:
    """Run the parts of the night, all of them unless some are named; exit code 1 when
    one failed.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    began = datetime.now(UTC)
    ran = list[Ran]()
    for part in PARTS:
        if names and part.name not in names:
            continue
        click.echo(f"{part.name}: {part.what} …")
        ran.append(run(part))
        click.echo(f"  {ran[-1].verdict}, {ran[-1].seconds / 60:.1f} min")
        # after each, so that a night that is cut off has one
        PAGE.write_text(page(ran, began), encoding="utf-8")
    click.echo(f"{PAGE.relative_to(ROOT)} says what it found.")
    sys.exit(1 if any(each.code for each in ran) else 0)


if __name__ == "__main__":
    main(prog_name="python -m tests.night")
