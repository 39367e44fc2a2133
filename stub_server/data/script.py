"""The script of a sandbox's past: what people do and when, beside what the clock does by itself."""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from random import Random
from typing import Any, TypeVar

from ..engine.draft import Draft
from ..engine.sandbox import Sandbox
from ..engine.scheduler import run
from ..engine.step import Cause
from ..engine.tables.store import Store

T = TypeVar("T")
Action = Callable[..., object]
PERSON = Cause("request", "", "seeding")


class Script:
    """A queue of instants and actions that drives a sandbox's clock up to its end.

    `now` is the present instant, `end` the last one; `rng` decides what was not drawn before. An
    action drafts a step through the engine as a request does.
    """

    def __init__(self, sandbox: Sandbox, store: Store, begin: int, end: int, rng: Random) -> None:
        self.sandbox, self.store, self.now, self.end = sandbox, store, begin, end
        self.rng = rng
        self._queue: list[tuple[int, int, Action, tuple[Any, ...]]] = []  # a heap
        self._added = 0

    def add(self, at: int, action: Action, *args: Any) -> None:
        """Queue an action for an instant (ms); what is due after the end is left out."""
        if at <= self.end:
            self._added += 1
            heappush(self._queue, (max(at, self.now), self._added, action, args))

    def follow(self, life: Iterator[int]) -> None:
        """Have a life act now, and again at the instants that it yields."""
        at = next(life, None)
        if at is not None:
            self.add(at, self.follow, life)

    def draft(self) -> Draft:
        """A step of a person at the present instant."""
        return Draft(self.sandbox, self.store, PERSON, self.now)

    def step(self, change: Callable[..., T], *args: Any) -> T:
        """Record a step that `change(draft, …)` drafts, none if it drafts nothing; returns what
        that returns.
        """
        draft = self.draft()
        made = change(draft, *args)
        draft.record()
        return made

    def plan(self, at: int, change: Action, *args: Any) -> None:
        """Queue a step at an instant (ms)."""
        self.add(at, self.step, change, *args)

    def run(self) -> None:
        """Do everything in the order of time; at one instant, jobs of the clock come first."""
        queue, timers = self._queue, self.sandbox.timers
        while True:
            timer = timers.next_job(queue[0][0] if queue else self.end)
            if timer is not None:
                self.now = max(self.now, timer.due)
                run(self.sandbox, timer, self.now)
            elif queue:
                self.now, _, action, args = heappop(queue)
                action(*args)
            else:
                break
        for skipped in [*timers.skipped.values()]:  # no step comes that would remove them
            timers.discard(skipped)

    def close(self) -> None:
        """Release the actors, who refer to the script: a cycle would keep the whole
        sandbox in memory.
        """
        self._queue.clear()
        self.sandbox.origin.declining.clear()
