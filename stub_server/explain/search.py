"""Finds the nearest request that succeeds: each attempt is run in a copy of the world, and repaired by its refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from ..calls.server import Server
from ..contract.document import Document
from ..engine.sandbox import Sandbox
from .attempt import Attempt
from .harmless import harmless
from .kinds import KINDS
from .mending import Mender
from .rehearsal import Answer, Rehearsal
from .situation import Situation

MOST = 48  # attempts for one explanation
DEEPEST = 10  # repairs one after the other
OFTEN = 2  # times that the same refusal is repaired on one way


class Search:
    """One search. `words` are what the refused request's body says; `left` is how many attempts may still be made."""

    def __init__(
        self,
        server: Server,
        document: Document,
        mender: Mender,
        rehearsal: Rehearsal,
        merchant: str,
        words: frozenset[str],
    ) -> None:
        self._server, self._document, self._mender = server, document, mender
        self._rehearsal, self._merchant, self._words = rehearsal, merchant, words
        self._seen: set[object] = set()
        self.left = MOST
        self.met: dict[str, None] = {}  # codes of the refusals, in order

    async def nearest(self, attempt: Attempt, stage: Sandbox, met: tuple[object, ...] = ()) -> Attempt | None:
        """The attempt, or a repair of it, that succeeds; None where none was found.

        `stage` is a copy of the world in which the calls before have been made. A refusal leaves it as it was. `met`
        are the refusals on the way: where one comes back, its repair has not helped.
        """
        attempt = harmless(attempt, self._words, stage.clock.now, stage.rules.lifecycles["Project"])
        question = attempt.question
        mark = tuple((*call[:3], tuple(call.headers.items()), call.body) for call in (*attempt.before, question))
        if self.left <= 0 or len(met) > DEEPEST or mark in self._seen:
            return None
        self._seen.add(mark)
        self.left -= 1
        answer = await self._rehearsal.ask(self._server, stage, question)
        await asyncio.sleep(0)  # others are served between two attempts
        if answer.is_success:
            return attempt
        self.met[answer.code or ""] = None
        refusal = answer.code, answer.details[0]["field"] if answer.details else None
        if met.count(refusal) >= OFTEN:
            return None
        for candidate in self._repairs(attempt, stage, answer):
            below = await self._prepared(candidate, attempt, stage)
            found = None if below is None else await self.nearest(candidate, below, (*met, refusal))
            if found is not None or self.left <= 0:
                return found
        return None

    def _repairs(self, attempt: Attempt, stage: Sandbox, answer: Answer) -> Iterator[Attempt]:
        kind = KINDS.get(answer.code or "")
        if kind is None or kind.repair is None:
            return iter(())
        situation = Situation(self._mender, self._document, stage, self._merchant, attempt, answer)
        return kind.repair(situation)

    async def _prepared(self, candidate: Attempt, attempt: Attempt, stage: Sandbox) -> Sandbox | None:
        """The world after the calls that a candidate makes first; None where one of them is refused."""
        further = candidate.before[len(attempt.before) :]
        if not further:
            return stage
        below = self._rehearsal.stage(stage)
        for call in further:
            self.left -= 1
            answer = await self._rehearsal.ask(self._server, below, call)
            await asyncio.sleep(0)
            if not answer.is_success:
                return None
        return below
