"""Lists that grow at one end and drop items at the other: what is dropped, and how two
such lists differ.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


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


def oldest_of(
    items: Iterable[T], number: int, size: int, size_of: Callable[[T], int]
) -> tuple[T, ...]:
    """The oldest items, at least so many and of so many bytes; none where neither is above 0."""
    going = []
    for item in items:
        if number <= 0 and size <= 0:
            break
        going.append(item)
        number -= 1
        size -= size_of(item)
    return tuple(going)
