"""Lists that grow at one end and drop items at the other: what is dropped, and how two
such lists differ.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar


class Sized(Protocol):
    """Something that knows about how many bytes it keeps alive."""

    @property
    def size(self) -> int:
        """Bytes."""


T = TypeVar("T", bound=Sized)


class Ends(NamedTuple):
    """The oldest and the newest items of which two lists differ, oldest first."""

    oldest_before: tuple[Any, ...] = ()
    oldest_after: tuple[Any, ...] = ()
    newest_before: tuple[Any, ...] = ()
    newest_after: tuple[Any, ...] = ()

    @property
    def mirrored(self) -> "Ends":
        """The difference from the second list to the first."""
        return Ends(self.oldest_after, self.oldest_before, self.newest_after, self.newest_before)


NONE = Ends()


def ends_of(before: Sequence[Any], after: Sequence[Any]) -> Ends:
    """How two lists differ at their ends; without a stretch in common, all their items do."""
    first, second = _start_in_common(before, after)
    length = 0
    for old, new in zip(before[first:], after[second:], strict=False):
        if old != new:
            break
        length += 1
    return Ends(
        tuple(before[:first]),
        tuple(after[:second]),
        tuple(before[first + length :]),
        tuple(after[second + length :]),
    )


def _start_in_common(before: Sequence[Any], after: Sequence[Any]) -> tuple[int, int]:
    """Where the stretch in common begins in both lists: at the beginning of at least one."""
    if before and after:
        for place, item in enumerate(before):
            if item == after[0]:
                return place, 0
        for place, item in enumerate(after):
            if before[0] == item:
                return 0, place
    return 0, 0


class Queue(Generic[T]):
    """Items in their order: new ones come at the end, and the oldest go to make room for them.

    `size` is how many bytes they keep alive.
    """

    __slots__ = ("_items", "size")

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self.size = 0

    def _oldest(self, coming: Sequence[T], most: int, most_bytes: int) -> tuple[T, ...]:
        """The oldest items, as many as have to go so that with the new ones there are at most so
        many items and bytes.
        """
        number = len(self._items) + len(coming) - most
        size = self.size + sum([item.size for item in coming]) - most_bytes
        going = []
        for item in self._items:
            if number <= 0 and size <= 0:
                break
            going.append(item)
            number -= 1
            size -= item.size
        return tuple(going)

    def exchange(self, ends: Ends) -> None:
        """Replace the items by those of another time, which differ at the ends."""
        for _ in ends.newest_before:
            self.size -= self._items.pop().size
        for _ in ends.oldest_before:
            self.size -= self._items.popleft().size
        self._items.extendleft(reversed(ends.oldest_after))
        self._items.extend(ends.newest_after)
        self.size += sum([item.size for item in (*ends.oldest_after, *ends.newest_after)])

    def copy(self) -> Self:
        """An independent copy; items are shared, for they never change."""
        twin = copy(self)
        twin._items = self._items.copy()
        return twin

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)
