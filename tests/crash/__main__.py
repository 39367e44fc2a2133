"""Kills a process again and again and looks at what it leaves:

`python -m tests.crash --kills 300`.
"""

import os
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import click
import orjson

from .child import live, reopened
from .damage import Suffered, suffer
from .deliveries import Came, flooded
from .places import PLACES
from .replicas import Harassed, harassed

PATIENCE = 20.0  # seconds until a process that should die at a place has had its chance


class Trial:
    """One directory, in which one process after the other lives and is killed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = Random(seed)
        self.kills: Counter[str] = Counter()
        self.acknowledged = self.begun = 0

    def kill(self, place: str | None) -> list[str]:
        """Have a process live and die; answers what is wrong with what it left."""
        told = self.folder / "told"
        told.unlink(missing_ok=True)
        seed = self.random.randrange(1 << 30)
        count = self.random.randrange(1, 30)
        child = os.fork()
        if not child:
            _alone(lambda: live(self.folder / "store", _opened(told), seed, place, count))
        died_there = self._wait(child, told, place)
        self.kills[place if place is not None and died_there else "at random"] += 1
        acknowledged, begun = _read(told)
        if acknowledged is None:
            return []  # it was killed before it was ready; the next one opens what it left
        self.acknowledged += 1
        self.begun += begun is not None
        return self._look(acknowledged, begun)

    def _wait(self, child: int, told: Path, place: str | None) -> bool:
        """Wait for a process to die, or kill it; answers whether it died at its place."""
        until = time.monotonic() + PATIENCE
        lasts: float | None = None
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                if not os.WIFSIGNALED(status):
                    raise AssertionError(
                        f"the process ended by itself: {os.waitstatus_to_exitcode(status)}"
                    )
                return True
            now = time.monotonic()
            if lasts is None and told.exists() and told.stat().st_size:
                lasts = now + (self.random.random() ** 2 * 0.6 if place is None else 3.0)
            if now > until or (lasts is not None and now > lasts):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return False
            time.sleep(0.002)

    def _look(self, acknowledged: Any, begun: Any) -> list[str]:
        """Open the directory in a process of its own."""
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            _alone(
                lambda: os.write(
                    writer, orjson.dumps(_told(self.folder / "store", acknowledged, begun))
                )
            )
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            data = pipe.read()
        os.waitpid(child, 0)
        return orjson.loads(data) if data else ["the directory did not open"]


def _told(folder: Path, acknowledged: Any, begun: Any) -> list[str]:
    facts = {name: tuple(told) for name, told in acknowledged.items()}
    return reopened(folder, facts, begun)


def _alone(work: Any) -> None:
    """Do something in a process of its own, and end it."""
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _opened(told: Path) -> int:
    return os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def _read(told: Path) -> tuple[Any, Any]:
    """What was acknowledged last, and what had begun since."""
    acknowledged = begun = None
    for line in told.read_bytes().splitlines(keepends=True) if told.exists() else ():
        if not line.endswith(b"\n"):
            break
        said = orjson.loads(line)
        if "facts" in said:
            acknowledged = said["facts"]
            begun = None
        else:
            begun = said["begins"]
    return acknowledged, begun


@click.command()
@click.option("--kills", default=300, show_default=True, help="How many processes are killed.")
@click.option(
    "--replicas",
    default=300,
    show_default=True,
    help="How often one of two servers on PostgreSQL is.",
)
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--fresh", default=20, show_default=True, help="After so many kills a new directory begins."
)
@click.option(
    "--events", default=10_000, show_default=True, help="Then so many events; 0 makes none."
)
@click.option(
    "--damages",
    type=(int, int, int),
    default=(200, 50, 20),
    show_default=True,
    help="Flips, cuts, removals.",
)
def main(
    kills: int, replicas: int, seed: int, fresh: int, events: int, damages: tuple[int, int, int]
) -> None:
    """Kill processes at random moments and at every place in turn; exit code 1 when something was
    lost.

    Then two servers on PostgreSQL, which are stopped, cut off and left without room as well. Then a
    flood of events to a receiver that fails, with a server that is killed five times, and
    directories of which a bit is flipped, a file is cut off, or a row or a file is removed.
    """
    places = [*PLACES]
    done: Counter[str] = Counter()
    acknowledged = begun = 0
    wrong = []
    for first in range(0, kills, fresh):
        with tempfile.TemporaryDirectory() as folder:
            trial = Trial(Path(folder), seed + first)
            for number in range(first, min(kills, first + fresh)):
                place = places[number // 2 % len(places)] if number % 2 else None
                found = trial.kill(place)
                wrong += [f"kill {number} {place or 'at random'}: {text}" for text in found]
            done += trial.kills
            acknowledged += trial.acknowledged
            begun += trial.begun
    shared: Harassed | None = None
    if replicas:
        shared = harassed(replicas, seed)
        wrong += shared.wrong
    flood: Came | None = None
    if events:
        with tempfile.TemporaryDirectory() as folder:
            flood = flooded(Path(folder), events, 5)
        wrong += [f"the event of customer {ident} never arrived" for ident in flood.missing]
    suffered: Suffered | None = None
    if any(damages):
        with tempfile.TemporaryDirectory() as folder:
            suffered = suffer(Path(folder), damages, seed)
        wrong += suffered.wrong
    report = {
        "damages": suffered and {"found": suffered.found, "harmless": suffered.harmless},
        "flood": flood and flood._asdict(),
        "kills": done.total(),
        "looked_at": acknowledged,
        "in_a_request": begun,
        "places": done,
        "replicas": shared and {**shared._asdict(), "wrong": len(shared.wrong)},
        "wrong": wrong,
    }
    print(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(prog_name="python -m tests.crash")
