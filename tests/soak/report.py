"""What a soak came to, as a table."""

from __future__ import annotations

from rich.table import Table

from .clients import KINDS
from .run import Outcome, quantile


def table(outcome: Outcome) -> Table:
    """One line for each kind of client."""
    made = Table(
        title=f"{sum(kind.clients for kind in KINDS.values())} clients for {outcome.lasted:.0f} s"
    )
    for name in ("kind", "clients", "answers", "statuses", "p50 ms", "p99 ms", "longest ms"):
        made.add_column(name, justify="left" if name in ("kind", "statuses") else "right")
    for name, kind in KINDS.items():
        times = outcome.times(name)
        found = sorted(
            (status, n) for (whose, status), n in outcome.tally.statuses.items() if whose == name
        )
        statuses = ", ".join(f"{status or 'cut off'}: {n}" for status, n in found)
        figures = (
            [f"{quantile(times, share):.1f}" for share in (0.5, 0.99, 1)] if times else ["", "", ""]
        )
        made.add_row(name, str(kind.clients), str(len(times)), statuses, *figures)
    return made
