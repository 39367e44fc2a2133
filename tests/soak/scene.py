"""What clients of a soak share: worlds, what was answered, and how long it took."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random
from time import perf_counter
from typing import Any

from .wire import Answer, Client

TEAMS = 8
OK = range(200, 300)
REFUSED = range(400, 500)
MOST_FAULTS = 20


@dataclass(slots=True)
class Tally:
    """Answers by kind of client and status; of each kind the moments (seconds since the start) and
    times in seconds.
    """

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    times: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def note(
        self,
        kind: str,
        began: float,
        took: float,
        answer: Answer,
        expected: Collection[int],
        what: str,
    ) -> None:
        """Take an answer in; what was not expected is a fault."""
        self.statuses[kind, answer.status] += 1
        self.times.setdefault(kind, []).append((began, took))
        if answer.status not in expected and len(self.faults) < MOST_FAULTS:
            self.faults.append(f"{kind}: {what} was answered {answer.status} {answer.body[:200]!r}")


@dataclass(slots=True)
class Scene:
    """One run. `credentials` are those of the teams' worlds, which many share."""

    port: int
    lasts: float
    began: float = field(default_factory=perf_counter)
    tally: Tally = field(default_factory=Tally)
    credentials: list[dict[str, Any]] = field(default_factory=list)

    @property
    def passed(self) -> float:
        """Seconds since the start."""
        return perf_counter() - self.began

    @property
    def goes_on(self) -> bool:
        """Whether there is time left."""
        return self.passed < self.lasts

    async def prepare(self) -> None:
        """Have the teams' worlds be there."""
        client = Client(self.port)
        for team in range(TEAMS):
            answer = await client.ask("GET", f"/s/team-{team}/_sandbox/credentials")
            assert answer.status == 200, answer
            self.credentials.append(answer.json())
        client.close()


class Actor:
    """One client of a kind, with luck and a connection of its own."""

    def __init__(self, scene: Scene, kind: str, number: int) -> None:
        self.scene = scene
        self.kind = kind
        self.number = number
        self.luck = Random(f"{kind} {number}")
        self.client = Client(scene.port)
        self.team = number % TEAMS
        self.turn = 0

    @property
    def own(self) -> dict[str, Any]:
        """What a request to the team's world needs."""
        return self.scene.credentials[self.team]

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        token: str | None = None,
        expected: Collection[int] = OK,
        **headers: str,
    ) -> Answer:
        """A request whose answer is noted."""
        began = self.scene.passed
        answer = await self.client.ask(method, path, body, token, **headers)
        self.scene.tally.note(
            self.kind, began, self.scene.passed - began, answer, expected, f"{method} {path[:80]}"
        )
        return answer

    async def here(self, method: str, path: str, body: object = None, **options: Any) -> Answer:
        """The same in the team's world, with its token."""
        options.setdefault("token", self.own["jwt"])
        return await self.ask(method, f"/s/team-{self.team}{path}", body, **options)

    async def rest(self, seconds: float) -> None:
        """Think, a little more or less."""
        await asyncio.sleep(seconds * (0.5 + self.luck.random()))


def order(credentials: dict[str, Any], number: int, items: int = 1) -> dict[str, Any]:
    """A PIX order of somebody who exists already."""
    customer = {
        "name": "Ana Souza",
        "email": f"ana{number}@example.com",
        "document": "39053344705",
        "phones": {"mobile": "11987654321"},
        "address": {
            "street": "Rua A",
            "zip_code": "01310100",
            "city": "São Paulo",
            "state": "SP",
            "country": "BR",
        },
    }
    return {
        "projectId": credentials["sample"]["projectId"],
        "planId": credentials["sample"]["planId"],
        "totalAmount": 10.5 * items,
        "customer": customer,
        "items": (
            [
                {
                    "description": "Curso " + "x" * (200 if items > 1 else 0),
                    "quantity": 1,
                    "amount": 10.5,
                }
            ]
            * items
        ),
    }
