"""Bounded queues of a sandbox: its log of steps and its saved replies. Journal and inbox are
bounded alike.

All sandboxes of a server share a budget of bytes: past it, the largest queues drop their oldest
items.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, ItemsView, Iterator
from operator import attrgetter
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from ..core.ends import Ends, oldest_of
from .step import ReplyKey, Saved, Step

MOST_BYTES = 32 * 1024 * 1024
MOST_BYTES_IN_ALL = 256 * 1024 * 1024
MOST_REPLIES, MOST_REPLY_BYTES = 10_000, 32 * 1024 * 1024
REPLY_OVERHEAD = 500  # bytes of a reply besides its body


class Sized(Protocol):
    """Something that knows about how many bytes it keeps alive."""

    @property
    def size(self) -> int:
        """Bytes."""


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


class Bounded(Generic[T]):
    """Items in order, of which the oldest are dropped when they take too many bytes; `size` is how
    many they take.
    """

    __slots__ = ("__weakref__", "_items", "budget", "size")

    def __init__(self, budget: Budget) -> None:
        """`budget` is shared with other sandboxes."""
        self.budget = budget
        self._items: deque[T] = deque()
        self.size = 0

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

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._items)

    def __len__(self) -> int:
        return len(self._items)


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


class Replies:
    """The replies saved for Idempotency-Keys, in the order of their time, in which they
    also expire.
    """

    __slots__ = ("_bytes", "_saved")

    def __init__(self) -> None:
        # Not a dict: finding the first item of one takes the longer the more were removed before
        # it.
        self._saved: OrderedDict[ReplyKey, Saved] = OrderedDict()
        self._bytes = 0

    def get(self, key: ReplyKey) -> Saved | None:
        """The reply saved for a key."""
        return self._saved.get(key)

    def items(self) -> ItemsView[ReplyKey, Saved]:
        """All of them."""
        return self._saved.items()

    def outgoing(self, saved: Saved, now: int) -> tuple[tuple[ReplyKey, Saved], ...]:
        """The replies to drop for one more: those that have expired, and the oldest of too many."""
        expired = 0
        for reply in self._saved.values():
            if reply.expires > now:
                break
            expired += 1
        number = max(expired, len(self._saved) + 1 - MOST_REPLIES)
        size = self._bytes + _size(saved) - MOST_REPLY_BYTES
        return oldest_of(self._saved.items(), number, size, lambda item: _size(item[1]))

    def exchange(self, ends: Ends) -> None:
        """Replace the replies by those of another time, which differ at the ends."""
        for key, saved in (*ends.oldest_before, *ends.newest_before):
            del self._saved[key]
            self._bytes -= _size(saved)
        for key, saved in (*reversed(ends.oldest_after), *ends.newest_after):
            self._saved[key] = saved
            self._bytes += _size(saved)
        for key, _ in reversed(ends.oldest_after):
            self._saved.move_to_end(key, last=False)

    def copy(self) -> Replies:
        """An independent copy."""
        twin = Replies()
        twin._saved, twin._bytes = self._saved.copy(), self._bytes
        return twin


def _size(saved: Saved) -> int:
    return REPLY_OVERHEAD + len(saved.body)
