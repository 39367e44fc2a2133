"""Finds the nearest request that succeeds: runs attempts in a copy of the sandbox and repairs refused ones."""

from typing import Any

from ..contract.document import Lifecycle
from ..contract.formats import is_date_time
from ..engine.sandbox import Sandbox
from ..kernel.clock import DAY, iso, parse_iso
from ..kernel.problem import Refusal
from ..kernel.text import nearest
from .attempt import Attempt, Situation
from .mending import NO, Mender
from .rehearsal import Rehearsal
from .repairs import KINDS

MOST = 48  # attempts for one explanation
OFTEN = 2  # times that the same refusal is repaired on one way
_YEAR = 365 * DAY
_NO_END = "The request did not ask for an end."


class Search:
    """One search for the nearest of what was `sent`. `left` is how many attempts may still be made."""

    def __init__(self, mender: Mender, rehearsal: Rehearsal, merchant: str, sent: Attempt) -> None:
        self._mender, self._rehearsal, self._merchant = mender, rehearsal, merchant
        body = sent.body
        values = body.values() if isinstance(body, dict) else ()
        words = (str(value) for value in values if not isinstance(value, dict | list))
        self._words = frozenset(word.strip().lower()[:64] for word in words)
        self._seen: set[object] = set()
        self.left = MOST
        self.codes: dict[str, None] = {}  # codes of the refusals, in order

    async def nearest(self, attempt: Attempt, copy: Sandbox, met: tuple[object, ...] = ()) -> Attempt | None:
        """The attempt, or a repair of it, that succeeds; None where none was found.

        `copy` is a copy of the sandbox after the calls before; a refusal does not change it. `met` are the refusals so
        far: a repair has not helped if its refusal comes again.
        """
        attempt = harmless(attempt, self._words, copy.clock.now, copy.rules.lifecycles["Project"])
        question = attempt.question
        calls = (*(call for call, _ in attempt.before), question)
        mark = tuple((*call[:3], tuple(call.headers.items()), call.body) for call in calls)
        if self.left <= 0 or mark in self._seen:
            return None
        self._seen.add(mark)
        self.left -= 1
        refusal = await self._rehearsal.ask(copy, question)
        if isinstance(refusal, bytes):
            return attempt
        self.codes[refusal.code] = None
        what = refusal.code, refusal.details[0]["field"] if refusal.details else None
        if met.count(what) >= OFTEN:
            return None
        kind = KINDS.get(refusal.code)
        situation = Situation(self._mender, self._rehearsal, copy, self._merchant, attempt, refusal)
        for candidate in () if kind is None or kind.repair is None else kind.repair(situation):
            below = await self._prepared(candidate, attempt, copy)
            found = None if below is None else await self.nearest(candidate, below, (*met, what))
            if found is not None or self.left <= 0:
                return found
        return None

    async def _prepared(self, candidate: Attempt, attempt: Attempt, copy: Sandbox) -> Sandbox | None:
        """The sandbox after the calls that a candidate makes first; None where one of them is refused."""
        further = candidate.before[len(attempt.before) :]
        if not further:
            return copy
        below = self._rehearsal.copy_of(copy)
        for call, _ in further:
            self.left -= 1
            if isinstance(await self._rehearsal.ask(below, call), Refusal):
                return None
        return below


def harmless(attempt: Attempt, words: frozenset[str], now: int, projects: Lifecycle) -> Attempt:
    """The attempt; what would switch its record off stays on, unless `words` of the request ask for it.

    A project is off while it does not sell, as its lifecycle says; plans and products have a state `inactive`.
    """
    changes: dict[str, Any] = {}
    sent = attempt.body
    body = sent if isinstance(sent, dict) else {}
    if body.get("is_active") is False and words.isdisjoint(NO):
        changes["is_active"] = True
    status = body.get("status")
    off = ["inactive", *(state for state in projects.states if state not in projects.sets["selling"])]
    if status in off and not any(nearest(word, [status]) for word in words):
        changes["status"] = "active"
    ends = str(body.get("expires_at"))
    names_day = any(len(word) >= 10 and ends.lower().startswith(word[:10]) for word in words)
    if is_date_time(ends) and parse_iso(ends) <= now and not names_day:
        changes["expires_at"] = iso(now + _YEAR)
    for name, value in changes.items():
        attempt = attempt.with_member([name], value, _NO_END)
    return attempt
