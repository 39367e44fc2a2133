"""The log of a world: its newest steps in order, bounded in number and in bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from operator import attrgetter
from typing import Protocol
from weakref import WeakKeyDictionary

from .step import Step

MOST_BYTES = 32 * 1024 * 1024
MOST_BYTES_IN_ALL = 256 * 1024 * 1024


class Bounded(Protocol):
    """Something of a world that takes `size` bytes and can let the oldest of what it holds go."""

    size: int

    def forget(self, size: int) -> None:
        """Let the oldest go, of about so many bytes."""


class Budget:
    """What the logs (or journals, or inboxes) of all worlds of a server may take together, in bytes."""

    __slots__ = ("_logs", "most", "steps", "used")

    def __init__(self, most: int = MOST_BYTES_IN_ALL) -> None:
        self.most, self.used = most, 0
        self.steps = 0  # that were recorded in sandboxes whose logs share it
        # A world that is dropped must not be held by what it shares. In order, so that ties are decided alike.
        self._logs: WeakKeyDictionary[Bounded, None] = WeakKeyDictionary()

    def join(self, log: Bounded) -> None:
        """Have a log be one of those that make room."""
        self._logs[log] = None

    def make_room(self) -> None:
        """The largest logs let their oldest steps go, so that worlds that nobody uses leave room to the others.

        A little more room is made than is needed: finding the largest looks at all logs.
        """
        goal = self.most - self.most // 64
        self.used = sum([log.size for log in self._logs])  # a log that is gone has given its bytes back
        while self.used > goal:
            largest = max(self._logs, key=attrgetter("size"))
            largest.forget(self.used - goal)


class Log:
    """The steps since the origin: `number` is that of the newest one, 0 for a world as it was seeded.

    The oldest steps go when there are too many; what they did stays done. `is_kept` is False of a past that is lived.
    """

    __slots__ = ("__weakref__", "_most", "_steps", "budget", "number", "size", "stored", "writer")
    is_kept = True  # whether a step's size is asked for

    def __init__(self, most: int, budget: Budget) -> None:
        """`most` is how many steps are kept; 0 keeps none."""
        self._most, self.budget = most, budget
        self._steps: deque[Step] = deque()
        self.size = self.number = 0
        self.writer: Callable[[Step], None] | None = None  # writes steps down where they outlive the process
        self.stored: Callable[[], Awaitable[None]] | None = None  # waits until they are

    def append(self, step: Step) -> None:
        """Keep a step, after it was written down; it must be the next one."""
        assert step.number == self.number + 1  # a draft that another step has overtaken was refused before
        if self.writer is not None:
            self.writer(step)
        steps, budget, size = self._steps, self.budget, step.size
        if not steps and self._most:
            budget.join(self)
        steps.append(step)
        self.number = step.number
        budget.used += size
        self.size = size = self.size + size
        while len(steps) > self._most or size > MOST_BYTES:
            self._forget()
            size = self.size
        if budget.used > budget.most:
            budget.make_room()

    def take_back(self, step: Step) -> None:
        """Have the newest step no longer."""
        self.number -= 1
        if self._steps and self._steps[-1] is step:
            self._steps.pop()
            self.size -= step.size
            self.budget.used -= step.size

    def refill(self, steps: Sequence[Step]) -> None:
        """Keep steps that were taken elsewhere, the newest of which is that of `number`."""
        self.number -= len(steps)
        for step in steps:
            self.append(step)

    def _forget(self) -> None:
        size = self._steps.popleft().size
        self.size -= size
        self.budget.used -= size

    def forget(self, size: int) -> None:
        """Let the oldest steps of about so many bytes go, at most half of what there is and at least one step."""
        goal = max(self.size // 2, self.size - size)
        self._forget()
        while self.size > goal:
            self._forget()

    def close(self) -> None:
        """Give the memory of a world that is no more back to the others. A step that it still takes is not kept."""
        self._most, self.writer, self.stored = 0, None, None
        while self._steps:
            self._forget()

    @property
    def oldest(self) -> int:
        """The number of the oldest step that is kept; one more than `number` when none is."""
        return self.number - len(self._steps) + 1

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    def __reversed__(self) -> Iterator[Step]:
        yield from reversed(self._steps)

    def __len__(self) -> int:
        return len(self._steps)

    def fresh(self, number: int) -> Log:
        """An empty log of the same bounds that goes on from a step's number."""
        twin = Log(self._most, self.budget)
        twin.number = number
        return twin


class Unkept(Log):
    """The log of a world's past while it is lived: what comes of its steps is the origin, and they are not kept."""

    __slots__ = ()
    is_kept = False

    is_kept = False

    def append(self, step: Step) -> None:
        """Let the step go."""
