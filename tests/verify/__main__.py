"""`make verify-mutants`: mutants of our own server, drawn by a seed, must be found and named.

Exit code 1 for a mutant that was not found, or not named. `test_verify.py` says that the server
itself does not depart.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from random import Random
from typing import NamedTuple

import click
import httpx2

from ..support.live import NO_TLS
from .mutants import every, unseen
from .runs import Outcome, backend, missed, shown, verify

AT_ONCE = 2


class Run(NamedTuple):
    """One run against a server with some mutants: at most `beside` divergences more, of the
    operations of `only`.
    """

    mutants: tuple[str, ...]
    beside: int
    only: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return " + ".join(self.mutants)

    def wrong(self, outcome: Outcome) -> list[str]:
        return missed(outcome, [every()[name] for name in self.mutants], self.beside)


def planned(seed: int, draw: int, *, everything: bool) -> Iterator[Run]:
    """Mutants that are drawn; or all of them, also in pairs and in fours."""
    hidden = unseen()
    drawn = [name for name in every() if name not in hidden]
    Random(seed).shuffle(drawn)
    for name in drawn if everything else drawn[:draw]:
        # a thousand runs of everything take a day
        only = tuple(every()[name].operations) if everything else ()
        yield Run((name,), 1, only)
    for size, number in ((2, 20), (4, 5)) if everything else ():
        for start in range(0, size * number, size):
            yield Run(tuple(drawn[start : start + size]), 2)


@click.command()
@click.argument("words", nargs=-1)
@click.option("--seed", type=int, default=1, help="Draws the mutants.", show_default=True)
@click.option("--draw", type=int, default=60, help="How many mutants are drawn.", show_default=True)
@click.option("--all", "everything", is_flag=True, help="Every mutant, pairs, and groups of four.")
def main(words: tuple[str, ...], seed: int, draw: int, everything: bool) -> None:
    """Run all, or those in whose name one of WORDS is."""
    runs = [run for run in planned(seed, draw, everything=everything)]
    chosen = [run for run in runs if not words or any(word in run.name for word in words)]
    servers: SimpleQueue[str] = SimpleQueue()

    def made(run: Run) -> Outcome:
        url = servers.get()
        try:
            httpx2.post(
                f"{url}/_mutants", json=[*run.mutants], timeout=60, verify=NO_TLS
            ).raise_for_status()
            return verify(url, *(word for name in run.only for word in ("--only", name)))
        finally:
            servers.put(url)

    failed = 0
    with backend() as first, backend() as second, ThreadPoolExecutor(AT_ONCE) as pool:
        servers.put(first)
        servers.put(second)
        for run, outcome in zip(chosen, pool.map(made, chosen), strict=True):
            wrong = run.wrong(outcome)
            failed += bool(wrong)
            coverage = outcome.report.get("coverage", 0.0)
            print(
                f"{'✗' if wrong else '✓'} {run.name} ({outcome.seconds:.0f} s, {coverage:.1f} %)",
                flush=True,
            )
            for each in wrong or map(shown, outcome.divergences):
                print(f"    {each}")
    print(f"{len(chosen) - failed} of {len(chosen)} runs are as they must be.")
    sys.exit(bool(failed or not chosen))


if __name__ == "__main__":
    main()
