"""The script of a world's past: what people do and when, beside what the clock brings about by itself."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from ..engine.draft import Draft
from ..engine.sandbox import Sandbox
from ..engine.scheduler import run
from ..engine.step import Cause, Step
from ..kernel.record import Record
from ..kernel.timers import Timer
from ..store.memory import Store

SOMEBODY = Cause("request", "", "seeding")
new = tuple.__new__  # makes a named tuple in half the time


class Script:
    """A queue of instants and actions that drives a world's clock up to its end.

    `now` is the instant that is lived, `end` the last one. An action drafts a step through the engine as a request
    does. `on_renewal` is told of every order that the clock makes, with the subscription that waits for it.
    """

    def __init__(self, sandbox: Sandbox, store: Store, begin: int, end: int) -> None:
        self.sandbox, self.store, self.now, self.end = sandbox, store, begin, end
        self.on_renewal: Callable[[Record, Record], None] = _ignore
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []  # a heap
        self._added = 0

    def add(self, at: int, action: Callable[..., None], *args: Any) -> None:
        """Have something done at an instant (ms); what is due after the end never happens."""
        if at <= self.end:
            self._added += 1
            heappush(self._queue, (max(at, self.now), self._added, action, args))

    def draft(self) -> Draft:
        """A step of somebody's at the present instant."""
        return Draft(self.sandbox, self.store, SOMEBODY, self.now)

    def record(self, draft: Draft) -> Step:
        """Record a step that changes something."""
        step = draft.record()
        assert step is not None
        if step.events:
            self._look(step)
        return step

    def run(self) -> None:
        """Live all of it, in the order of time; of what is due at one instant the clock comes first."""
        sandbox, queue, end = self.sandbox, self._queue, self.end
        timers = sandbox.timers
        while True:
            first = timers.first()
            if first is not None and first[0] <= (queue[0][0] if queue else end):
                timer = new(Timer, first)
                if timer[0] > self.now:
                    self.now = timer[0]
                step = run(sandbox, timer, self.now)
                if step is not None:
                    self._look(step)
            elif queue:
                self.now, _, action, args = heappop(queue)
                action(*args)
            else:
                break
        if timers.skipped:
            self.now = end
            last = self.draft()
            last.taken()
            last.record()

    def close(self) -> None:
        """Let go of the actors, who hold the script: a cycle would keep the whole world until a collector comes by."""
        self._queue.clear()
        self.sandbox.declining.clear()
        self.on_renewal = self.on_delivery = _ignore

    def _look(self, step: Step) -> None:
        """Tell those who wait for it what a step has made."""
        order = None
        for table, record, before in step.puts:
            if before is not None:
                if table == "subscriptions" and order is not None:
                    self.on_renewal(order, record)
                    order = None
            elif table == "orders" and step.cause is not SOMEBODY:
                order = record


def _ignore(*records: Record) -> None:
    """Nobody waits for these."""
