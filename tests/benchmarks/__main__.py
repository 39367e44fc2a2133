"""`make bench`: the sandbox beside stock Connexion, bare Starlette and the floor, in one
run on one core.
"""

import os
import statistics
import sys
from contextlib import ExitStack
from dataclasses import dataclass

import click
from rich.console import Console
from rich.table import Table

from . import sizes as by_size
from . import webhooks as deliveries
from .load import Result, fire
from .target import Target, started
from .world import Shot

NAMES = ("ours", "stock Connexion", "bare Starlette", "floor")
# What the sandbox holds itself to: times as fast as stock Connexion, by operation, and the share of
# bare Starlette.
FASTER = {"GET one customer": 5, "GET list of 20": 25, "PUT customer": 4, "POST PIX order": 4}
SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Sample:
    """One round of one operation on one server; `cpu` in µs per answer."""

    load: Result
    cpu: float | None


def measure(target: Target, shot: Shot, seconds: float) -> Sample:
    """One round."""
    before = target.cpu()
    load = fire(shot, target.port, target.token, seconds)
    after = target.cpu()
    return Sample(
        load, None if before is None or after is None else (after - before) / load.answers * 1e6
    )


@click.command()
@click.option(
    "--rounds", default=3, show_default=True, help="Rounds, interleaved; the medians are shown."
)
@click.option(
    "--seconds",
    default=2.0,
    show_default=True,
    help="Length of a round of one operation on one server.",
)
@click.option(
    "--check", is_flag=True, help="Exit code 1 when the sandbox is slower than it promises."
)
@click.option("--sizes", is_flag=True, help="Only what size costs, not the servers.")
@click.option(
    "--webhooks",
    is_flag=True,
    help="Only deliveries: how fast they are, and what they cost the others.",
)
@click.option(
    "--million", is_flag=True, help="Go on to a million orders: some minutes and 6 GiB of memory."
)
def main(
    rounds: int,
    seconds: float,
    check: bool,
    sizes: bool,
    webhooks: bool,
    million: bool,
) -> None:
    """Measure GET, list, PUT and POST on four servers, one core for the server and another for the
    load.

    Then what the number of orders costs: seeding, memory and every kind of read.
    """
    console = Console()
    console.width = max(console.width, 100)  # a narrow terminal would cut the figures
    if webhooks:
        missed = deliveries.measure(console, cores(), seconds)
    else:
        missed = [] if sizes else _servers(console, rounds, seconds)
        found = by_size.measure(million=million)
        console.print(by_size.sizes_table(found))
        missed += by_size.missed(found)
    for line in missed:
        click.echo(line)
    if check and missed:
        sys.exit(1)


def _servers(console: Console, rounds: int, seconds: float) -> list[str]:
    """Measure and show the servers; answers the promises that are not kept."""
    served, loading = cores()
    samples: dict[tuple[str, str], list[Sample]] = {}

    with ExitStack() as stack:
        targets = [stack.enter_context(started(name, served)) for name in NAMES]
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {loading})
        for target in targets:  # what is compiled at a first request is no part of a measurement
            for shot in target.shots:
                fire(shot, target.port, target.token, 0.3)
        for _ in range(rounds):
            for position in range(len(targets[0].shots)):
                for target in targets:
                    shot = target.shots[position]
                    sample = measure(target, shot, seconds)
                    samples.setdefault((shot.name, target.name), []).append(sample)
    console.print(table(samples))
    return verdict(samples)


def cores() -> tuple[int, int]:
    """The core of the server and the core of the load: the same one where there is only one."""
    free = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    return free[0], free[-1]


def median(samples: list[Sample], what: str) -> float:
    """The median of one measure over the rounds."""
    return statistics.median(
        s.cpu or 0 if what == "cpu" else getattr(s.load, what) for s in samples
    )


def table(samples: dict[tuple[str, str], list[Sample]]) -> Table:
    """The medians, and every server's speed as a multiple of stock Connexion's."""
    found = Table(
        title="One core, sixteen connections, medians; CPU is the server's own, per answer"
    )
    for column in ("operation", "server"):
        found.add_column(column)
    for column in ("requests/s", "p50 ms", "p99 ms", "CPU µs", "x stock", "of bare"):
        found.add_column(column, justify="right")
    for operation in FASTER:
        for name in NAMES:
            own = samples[operation, name]
            found.add_row(
                operation if name == NAMES[0] else "",
                name,
                f"{median(own, 'per_second'):,.0f}",
                f"{median(own, 'p50'):.2f}",
                f"{median(own, 'p99'):.2f}",
                f"{median(own, 'cpu'):.0f}",
                f"{ratio(samples, operation, name, 'stock Connexion'):.1f}",
                f"{ratio(samples, operation, name, 'bare Starlette'):.2f}",
                end_section=name == NAMES[-1],
            )
    return found


def ratio(
    samples: dict[tuple[str, str], list[Sample]], operation: str, name: str, other: str
) -> float:
    """How much faster one server is than another: by CPU per answer where it is known, which no
    load can falsify.

    The median over the rounds: two servers of one round have met the machine in about the same
    mood.
    """
    rounds = zip(samples[operation, name], samples[operation, other], strict=True)
    return statistics.median(
        (
            theirs.cpu / mine.cpu
            if mine.cpu and theirs.cpu
            else mine.load.per_second / theirs.load.per_second
        )
        for mine, theirs in rounds
    )


def verdict(samples: dict[tuple[str, str], list[Sample]]) -> list[str]:
    """The promises that the sandbox does not keep."""
    missed = []
    for operation, times in FASTER.items():
        stock = ratio(samples, operation, "ours", "stock Connexion")
        bare = ratio(samples, operation, "ours", "bare Starlette")
        if stock < times:
            missed.append(f"{operation}: {stock:.1f} times stock Connexion, not {times}.")
        if bare < SHARE:
            missed.append(f"{operation}: {bare:.2f} of bare Starlette, not {SHARE}.")
    return missed


if __name__ == "__main__":
    main(prog_name="python -m tests.benchmarks")
