"""`make soak`: prints a table, and fails where the server did not hold."""

import sys

import click
from rich.console import Console

from .report import table
from .run import GROWTH, quantile, soak

# times as long as at a quiet server in the same run the p99 of well-behaved clients may be
SLOWER = 10


@click.command()
@click.option("--minutes", default=10.0, show_default=True, help="How long it lasts.")
def main(minutes: float) -> None:
    """Sixty-four clients at once, well-behaved and not, against a server of its own."""
    console = Console()
    outcome = soak(minutes * 60)
    console.print(table(outcome))
    p99 = quantile(outcome.times(), 0.99)
    quiet = quantile(outcome.quiet, 0.99)
    held = outcome.memory[-1][1] / 1024**2
    console.print(f"memory {held:.0f} MiB, {outcome.growth:+.1%} since a fifth of the time")
    console.print(
        f"p99 of well-behaved clients {p99:.1f} ms, {quiet:.1f} ms at a quiet server meanwhile"
    )
    failures = list(outcome.failures)
    if outcome.growth > GROWTH:
        failures.append(f"memory grew by {outcome.growth:.1%}, more than {GROWTH:.0%}")
    if p99 > SLOWER * quiet:
        failures.append(
            f"the p99 of well-behaved clients is more than {SLOWER} times as long as at a quiet"
            " server"
        )
    for failure in failures:
        console.print(f"[red]{failure}[/red]")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
