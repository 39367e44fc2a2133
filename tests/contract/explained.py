"""`make explain`: what part of the refusals of a schemathesis run has a nearest request that
succeeds as it is pasted.

Exit code 1 when it is less than `GOAL` of those in the listed kinds. Each of the others is shown
with the reason.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx2

from ..support.contract import document
from ..support.explained import pasted
from ..support.make import Json
from .runner import run

GOAL = 0.95
RULES = document().schema("ErrorCode")["x-rules"]
PHASES = ("examples", "coverage", "fuzzing")
JOURNAL = 50_000
"""Requests that the server keeps: a whole run of schemathesis, so that every operation's refusals
are chosen from.
"""


@dataclass(slots=True)
class Measured:
    """How many refusals of each code have a nearest request that succeeds, and what is wrong with
    the others.

    `operations` are those whose refusals were chosen from.
    """

    good: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    unlisted: Counter[str] = field(default_factory=Counter)
    reasons: list[str] = field(default_factory=list)
    operations: set[str | None] = field(default_factory=set)

    @property
    def share(self) -> float:
        """The part that succeeds."""
        return self.good.total() / max(1, self.good.total() + self.bad.total())


def measure(
    url: str, folder: Path, most: int, *options: str, phases: tuple[str, ...] = PHASES
) -> Measured:
    """Let schemathesis provoke refusals in the sandbox at `url`, and paste the nearest of so many,
    chosen by a seed.
    """
    measured = Measured()
    with httpx2.Client(base_url=f"{url}/_sandbox", timeout=60) as control:
        control.post("/reset").raise_for_status()
        token = control.get("/credentials").raise_for_status().json()["jwt"]
        run(url, phases, folder / "events.ndjson", *options, token=token)
        found = [
            request for request in _refusals(control) if not request["path"].startswith("/_sandbox")
        ]
        measured.operations = {request["operationId"] for request in found}
        # The oldest first: what is pasted has the journal forget from that end.
        for place in sorted(
            Random(1).sample(range(len(found)), min(most, len(found))), reverse=True
        ):
            _paste(control, found[place], folder, measured)
    return measured


def _refusals(control: httpx2.Client) -> Iterator[Json]:
    """The refused requests that the journal keeps."""
    page = 1
    while True:
        answer = (
            control.get("/requests", params={"status": "4xx", "limit": 100, "page": page})
            .raise_for_status()
            .json()
        )
        yield from answer["requests"]
        if not answer["pagination"]["has_next"]:
            return
        page += 1


def _paste(control: httpx2.Client, request: Json, folder: Path, measured: Measured) -> None:
    code = request["code"]
    if not RULES.get(code, {"has_nearest": False}).get("has_nearest", True):
        measured.unlisted[code] += 1
        return
    answer = control.get(f"/requests/{request['id']}")
    if answer.status_code == 404:  # forgotten since
        return
    shown = answer.raise_for_status().json()["request"]
    nearest, state = shown["explanation"]["nearest"], shown["explanation"]["state"]
    # only another record or method would do
    if nearest is None and state is not None and state["needed"]:
        measured.unlisted[code] += 1
        return
    statuses = [] if nearest is None else pasted(nearest["curl"], folder)
    if statuses and all(200 <= status < 300 for status in statuses):
        measured.good[code] += 1
        return
    measured.bad[code] += 1
    why = "no repair succeeds" if nearest is None else f"pasted it was answered {statuses}"
    measured.reasons.append(
        f"{code}: {why}: {request['method']} {request['path'][:100]}:"
        f" {shown['explanation']['summary'][:200]}"
    )


def table(measured: Measured) -> str:
    """Both counts by code."""
    rows = [f"{'':32}{'succeeds':>10}{'does not':>10}"]
    for code in sorted(measured.good.keys() | measured.bad.keys()):
        rows.append(f"{code:32}{measured.good[code]:>10}{measured.bad[code]:>10}")
    rows += [f"{code:32}{'not listed':>20} ({count})" for code, count in measured.unlisted.items()]
    return "\n".join(rows)


def main() -> int:
    """A server, a run, the table."""
    from .__main__ import server

    parser = argparse.ArgumentParser(
        prog="make explain", description="Measure the nearest requests of refusals."
    )
    parser.add_argument("--most", type=int, default=1_000, help="refusals that are pasted")
    parser.add_argument(
        "-n", "--examples", type=int, default=5, help="made-up requests per operation"
    )
    parser.add_argument(
        "--seed", type=int, default=20261120, help="one seed is one choice of requests"
    )
    asked = parser.parse_args()
    with server(more=("--journal", str(JOURNAL))) as url, tempfile.TemporaryDirectory() as folder:
        options = (f"--seed={asked.seed}", f"--max-examples={asked.examples}")
        measured = measure(url, Path(folder), asked.most, *options)
    print(table(measured))
    print(*measured.reasons, sep="\n")
    print(
        f"{measured.share:.1%} of {measured.good.total() + measured.bad.total()} succeed as pasted."
    )
    return int(measured.share < GOAL)


if __name__ == "__main__":
    sys.exit(main())
