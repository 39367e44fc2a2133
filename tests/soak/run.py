"""A soak from its beginning to its end: all clients at once, memory watched, every world
judged afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from ..benchmarks.footprint import resident
from ..support.processes import Process
from .clients import GOOD, KINDS, Kind
from .scene import TEAMS, Actor, Scene, Tally
from .wire import Client

WARM = 0.2  # of the time; two of ten minutes
GROWTH = 0.1  # of what it held then the memory may grow by in the end
SAMPLES = 60
# who is at another server all the time, where nobody else is
QUIET = {GOOD: KINDS[GOOD]._replace(clients=4)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it. `memory` are moments in seconds and bytes; `broken` are worlds whose
    invariants do not hold.

    `quiet` are the times in ms of those who behaved at a server where nobody else was, in order.
    """

    lasted: float
    tally: Tally
    memory: list[tuple[float, int]]
    broken: list[str]
    quiet: list[float]

    @property
    def failures(self) -> list[str]:
        """Answers that nobody should have got, and laws that are broken."""
        errors = [
            f"{kind}: {n} answers {status}"
            for (kind, status), n in self.tally.statuses.items()
            if status >= 500
        ]
        return [
            *errors,
            *self.tally.faults,
            *[f"invariants of {name} do not hold" for name in self.broken],
        ]

    @property
    def growth(self) -> float:
        """How much more memory is held in the end than when everything was warm, as a
        share of that.
        """
        return self._held(0.95, 1.1) / self._held(WARM - 0.05, WARM) - 1

    def _held(self, since: float, until: float) -> float:
        return median(
            size for at, size in self.memory if since * self.lasted <= at <= until * self.lasted
        )

    def times(self, kind: str = GOOD, since: float = 0, until: float = float("inf")) -> list[float]:
        """How long answers took, in ms and in order."""
        return sorted(
            took * 1000 for began, took in self.tally.times.get(kind, ()) if since <= began < until
        )


def quantile(times: list[float], share: float) -> float:
    """A quantile of times that are in order."""
    return times[min(len(times) - 1, int(len(times) * share))] if times else 0.0


def started() -> Process:
    """`stub-server serve` as a user starts it: begun anew, and not forked off."""
    return Process(env={"PYTHONDONTWRITEBYTECODE": ""})


def soak(seconds: float) -> Outcome:
    """Run everything for so long against a server of its own, and a few clients against another.

    The machine is as busy for both.
    """
    with started() as server, started() as other:
        return asyncio.run(_soak(server, other, seconds))


async def _soak(server: Process, other: Process, seconds: float) -> Outcome:
    scene = Scene(server.port, seconds)
    quiet = Scene(other.port, seconds)
    await scene.prepare()
    await quiet.prepare()
    scene.began = quiet.began = perf_counter()
    memory: list[tuple[float, int]] = []
    async with asyncio.TaskGroup() as group:
        group.create_task(_watch(scene, server, memory))
        group.create_task(_together(scene, KINDS))
        group.create_task(_together(quiet, QUIET))
    broken = await _judge(scene)
    times = sorted(took * 1000 for _, took in quiet.tally.times[GOOD])
    return Outcome(seconds, scene.tally, memory, broken, times)


async def _together(scene: Scene, kinds: Mapping[str, Kind]) -> None:
    async with asyncio.TaskGroup() as group:
        for name, kind in kinds.items():
            for number in range(kind.clients):
                group.create_task(_live(Actor(scene, name, number), kind))


async def _live(actor: Actor, kind: Kind) -> None:
    await actor.rest(min(kind.pause, 1))
    while actor.scene.goes_on:
        await kind.turn(actor)
        actor.turn += 1
        await actor.rest(kind.pause)
    actor.client.close()


async def _watch(scene: Scene, server: Process, memory: list[tuple[float, int]]) -> None:
    while scene.goes_on:
        memory.append((scene.passed, resident(server.pid)))
        await asyncio.sleep(scene.lasts / SAMPLES)
    memory.append((scene.passed, resident(server.pid)))


async def _judge(scene: Scene) -> list[str]:
    client = Client(scene.port)
    broken = []
    for name in ("default", *[f"team-{team}" for team in range(TEAMS)], "keys-0", "large-0"):
        answer = await client.ask("GET", f"/s/{name}/_sandbox/invariants")
        if answer.status != 200:
            broken.append(name)
    client.close()
    return broken
