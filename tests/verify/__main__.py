"""`make verify-mutants`: our own server must not depart; mutants drawn by a seed must be found and named.

Exit code 1 for a divergence of our own server, and for a mutant that was not found, or not named.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from random import Random
from typing import NamedTuple

import click
import httpx2
from rich.console import Console
from rich.table import Column, Table

from ..support.live import NO_TLS
from .mutants import every, unseen
from .runs import CREDENTIALS, LIKE_A_PROXY, Outcome, backend, credentials, departed, missed, shown, verify

SEEDS = (42, 7, 20261120)
AT_ONCE = 2


class Run(NamedTuple):
    """One run: the mutants and flags of its server, and what it should have done otherwise."""

    name: str
    mutants: tuple[str, ...]
    flags: tuple[str, ...]
    judge: Callable[[Outcome], list[str]]
    credential: str = "jwt"
    only: tuple[str, ...] = ()


def of_ourselves(seeds: Sequence[int], kinds: Sequence[str]) -> Iterator[Run]:
    """The server itself, slow and shuffled, with each credential."""
    for scenario in ("default", "empty"):
        for seed in seeds:
            flags = ("--scenario", scenario, "--seed", str(seed), *LIKE_A_PROXY)
            for kind in kinds:
                yield Run(f"self {scenario} {seed} {kind}", (), flags, departed, kind)


def of_mutants(seed: int, draw: int, *, everything: bool) -> Iterator[Run]:
    """Mutants that follow from the contract, and twenty that are written by hand: alone, in pairs and in fours."""
    names, hidden = [*every()], unseen()
    drawn = [name for name in names if name not in hidden]
    Random(seed).shuffle(drawn)
    for name in drawn if everything else drawn[:draw]:
        only = tuple(every()[name].operations) if everything else ()  # a thousand runs of everything take a day
        yield Run(name, (name,), (), _judge((name,), 1), only=only)
    if everything:
        for size, count in ((2, 20), (4, 5)):
            for number in range(count):
                group = tuple(drawn[size * number : size * (number + 1)])
                yield Run(" + ".join(group), group, (), _judge(group, 2))


def _judge(names: tuple[str, ...], beside: int) -> Callable[[Outcome], list[str]]:
    return lambda outcome: missed(outcome, [every()[name] for name in names], beside)


@click.command()
@click.argument("words", nargs=-1)
@click.option("--seed", type=int, default=1, help="Draws the mutants.", show_default=True)
@click.option("--draw", type=int, default=60, help="How many mutants are drawn.", show_default=True)
@click.option("--all", "everything", is_flag=True, help="Every mutant, pairs, groups of four, and every credential.")
def main(words: tuple[str, ...], seed: int, draw: int, everything: bool) -> None:
    """Run all, or those in whose name one of WORDS is."""
    console = Console(soft_wrap=True)
    own = of_ourselves(SEEDS if everything else SEEDS[:1], CREDENTIALS if everything else CREDENTIALS[:1])
    runs = [*own, *of_mutants(seed, draw, everything=everything)]
    chosen = [run for run in runs if not words or any(word in run.name for word in words)]
    table = Table("", Column("run", no_wrap=True), "s", "sent", "reached", "divergences")
    failures = []
    servers: SimpleQueue[str] = SimpleQueue()

    def made(run: Run) -> tuple[Outcome, list[str]]:
        if run.flags:
            with backend(*run.flags) as url:
                outcome = verify(url, token=credentials(url)[run.credential])
                return outcome, run.judge(outcome)
        url = servers.get()
        try:
            httpx2.post(f"{url}/_mutants", json=[*run.mutants], timeout=60, verify=NO_TLS).raise_for_status()
            outcome = verify(url, *(word for name in run.only for word in ("--only", name)))
            return outcome, run.judge(outcome)
        finally:
            servers.put(url)

    with backend() as first, backend() as second, ThreadPoolExecutor(AT_ONCE) as pool:
        servers.put(first)
        servers.put(second)
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
    console.print(f"{len(chosen) - len({failure.partition(':')[0] for failure in failures})} of {len(chosen)} runs.")
    for failure in failures:
        console.print(failure, markup=False, style="red")
    sys.exit(bool(failures or not chosen))


if __name__ == "__main__":
    main()
