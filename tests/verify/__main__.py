"""`make verify-mutants`: our own server must not depart; each of twenty mutants, and each of ten pairs, must be found.

Exit code 1 for a divergence of our own server, and for a mutant that was not found, or not named.
"""

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Column, Table

from .mutants import MUTANTS, pairs
from .runs import LIKE_A_PROXY, Outcome, backend, departed, missed, shown, verify

SEEDS = (42, 7, 20261120)
AT_ONCE = 2


class Run(NamedTuple):
    """One run: the mutants and flags of its server, and what it should have done otherwise."""

    name: str
    mutants: tuple[str, ...]
    flags: tuple[str, ...]
    judge: Callable[[Outcome], list[str]]


def runs() -> list[Run]:
    """The server itself, slow and shuffled; each mutant alone; ten pairs."""
    own = [
        Run(f"self {scenario} {seed}", (), ("--scenario", scenario, "--seed", str(seed), *LIKE_A_PROXY), departed)
        for scenario in ("default", "empty")
        for seed in SEEDS
    ]
    alone = [Run(name, (name,), (), _judge((name,), 1)) for name in MUTANTS]
    both = [Run(" + ".join(pair), pair, (), _judge(pair, None)) for pair in pairs()]
    return [*own, *alone, *both]


def _judge(names: tuple[str, ...], beside: int | None) -> Callable[[Outcome], list[str]]:
    return lambda outcome: missed(outcome, [MUTANTS[name] for name in names], beside)


def made(run: Run) -> tuple[Outcome, list[str]]:
    """How a run ended, and what it should have done otherwise."""
    with backend(*run.flags, mutants=run.mutants) as url:
        outcome = verify(url)
    return outcome, run.judge(outcome)


@click.command()
@click.argument("words", nargs=-1)
def main(words: tuple[str, ...]) -> None:
    """Run all, or those in whose name one of WORDS is."""
    console = Console(soft_wrap=True)
    chosen = [run for run in runs() if not words or any(word in run.name for word in words)]
    table = Table("", Column("run", no_wrap=True), "s", "sent", "reached", "divergences")
    failures = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for run, (outcome, wrong) in zip(chosen, pool.map(made, chosen), strict=True):
            failures += [f"{run.name}: {each}" for each in wrong]
            console.print(f"{run.name}: {'missed' if wrong else 'as it must be'} ({outcome.seconds:.0f} s)")
            table.add_row(
                "✗" if wrong else "✓",
                run.name,
                f"{outcome.seconds:.0f}",
                str(outcome.report.get("requests", "–")),
                f"{outcome.report.get('coverage', 0.0):.1f} %",
                "\n".join(map(shown, outcome.divergences)) or "–",
                style="red" if wrong else None,
            )
    console.print(table)
    for failure in failures:
        console.print(failure, markup=False, style="red")
    sys.exit(bool(failures or not chosen))


if __name__ == "__main__":
    main()
