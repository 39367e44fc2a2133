"""What a sandbox keeps besides its state, bounded in number and bytes: the log of its newest steps
and the journal of its newest requests. An inbox of `webhooks` is bounded alike.

All sandboxes of a server share a budget of bytes: past it, the largest queues drop their oldest
items. The journal is not part of the state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from operator import attrgetter
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from .lists import Queue, Sized
from .step import Step
from .trace import Trace

MOST_BYTES = 32 * 1024 * 1024  # of a log, and of a journal
MOST_BYTES_IN_ALL = 256 * 1024 * 1024
KEPT = 2_000  # requests, unless told otherwise


T = TypeVar("T", bound=Sized)


class Budget:
    """How many bytes the logs, journals and inboxes of all sandboxes may take together.

    `steps` counts what was recorded in the sandboxes whose logs share it.
    """

    __slots__ = ("_members", "most", "steps", "used")

    def __init__(self, most: int = MOST_BYTES_IN_ALL) -> None:
        self.most, self.used, self.steps = most, 0, 0
        # Weak: a deleted sandbox must be freed. In order, so that ties are always decided alike.
        self._members: WeakKeyDictionary[Bounded[Any], None] = WeakKeyDictionary()

    def join(self, member: Bounded[Any]) -> None:
        """Add a member, which may have to drop items."""
        self._members[member] = None

    def make_room(self) -> None:
        """Drop the oldest items of the largest members.

        A little more than is needed, because finding the largest looks at all members.
        """
        goal = self.most - self.most // 64
        self.used = sum([member.size for member in self._members])  # without those that are gone
        while self.used > goal:
            max(self._members, key=attrgetter("size")).forget(self.used - goal)


class Bounded(Queue[T]):
    """Items in order, of which the oldest are dropped when they take too many bytes."""

    __slots__ = ("__weakref__", "budget")

    def __init__(self, budget: Budget) -> None:
        """`budget` is shared with other sandboxes."""
        super().__init__()
        self.budget = budget

    def _add(self, item: T, number: int, most: int) -> None:
        """Add an item.

        The oldest make room beyond so many and so many bytes, and if the server has no room.
        """
        items, size, budget = self._items, item.size, self.budget
        if not items:
            budget.join(self)
        items.append(item)
        self.size += size
        budget.used += size
        while len(items) > number or self.size > most:
            self._drop()
        if budget.used > budget.most:
            budget.make_room()

    def _drop(self) -> T:
        """Drop the oldest item."""
        item = self._items.popleft()
        self.size -= item.size
        self.budget.used -= item.size
        return item

    def forget(self, size: int) -> None:
        """Drop the oldest items of about so many bytes: at most half of all bytes, and at
        least one item.
        """
        goal = max(self.size // 2, self.size - size)
        self._drop()
        while self.size > goal:
            self._drop()

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._items)


class Log(Bounded[Step]):
    """The steps since the origin. `number` is that of the newest one, 0 for a sandbox as it was
    seeded.

    The oldest steps are dropped when there are too many; their effects stay. `writer` is given each
    step to store outside the process, and `stored` waits until that is done.
    """

    __slots__ = ("_most", "number", "stored", "writer")

    def __init__(self, most: int, budget: Budget) -> None:
        """`most` is how many steps are kept; 0 keeps none."""
        super().__init__(budget)
        self._most, self.number = most, 0
        self.writer: Callable[[Step], None] | None = None
        self.stored: Callable[[], Awaitable[None]] | None = None

    def append(self, step: Step) -> None:
        """Give the next step to the writer, and add it.

        If the writer refuses it, nothing has changed.
        """
        # Draft.record refuses a draft that another step has overtaken
        assert step.number == self.number + 1
        if self.writer is not None:
            self.writer(step)
        self.number = step.number
        if self._most:
            self._add(step, self._most, MOST_BYTES)

    @staticmethod
    def has_room(size: int) -> bool:
        """Whether a step of so many bytes is kept at all."""
        return size <= MOST_BYTES

    def close(self) -> None:
        """Free the memory of a deleted sandbox. Later steps are dropped."""
        self._most, self.writer, self.stored = 0, None, None
        while self._items:
            self._drop()

    @property
    def oldest(self) -> int:
        """The number of the oldest step that is kept; one more than `number` when none is."""
        return self.number - len(self._items) + 1

    def fresh(self, number: int) -> Log:
        """An empty log with the same bounds, which continues at a step's number."""
        twin = Log(self._most, self.budget)
        twin.number = number
        return twin


class Journal(Bounded[Trace]):
    """The newest requests, the oldest first; so many were ever `appended`.

    A request counts with its path, query, headers and bodies. Those to the control surface have as
    many places again, so that they take none from the API.
    """

    __slots__ = ("_cleared", "_controls", "_most", "appended", "keeps_bodies")

    def __init__(self, most: int, budget: Budget) -> None:
        """`most` requests are kept; 0 keeps no bodies, and as many requests as usual.

        `budget` is the server's.
        """
        super().__init__(budget)
        self._most, self.keeps_bodies = most or KEPT, most > 0
        self.appended = self._cleared = 0
        self._controls = 0  # how many of them went to the control surface

    def append(self, trace: Trace) -> None:
        """Keep a request; the oldest make room."""
        self.appended += 1
        self._controls += trace.is_control
        self._add(trace, self._most + min(self._controls, self._most), MOST_BYTES)

    def _drop(self) -> Trace:
        dropped = super()._drop()
        self._controls -= dropped.is_control
        return dropped

    @property
    def is_whole(self) -> bool:
        """Whether every request since the last clearing is still there."""
        return self.appended - len(self._items) == self._cleared

    def clear(self) -> None:
        """Delete every request."""
        while self._items:
            self._drop()
        self._cleared = self.appended

    def find(self, ident: str) -> Trace | None:
        """The request with an id, if it is still kept."""
        for trace in reversed(self._items):
            if trace.id == ident:
                return trace
        return None

    def fresh(self) -> Journal:
        """An empty journal of the same bounds, with which a fork begins."""
        return Journal(self._most if self.keeps_bodies else 0, self.budget)
