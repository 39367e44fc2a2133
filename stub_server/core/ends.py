"""Lists that grow at one end and drop items at the other: what is dropped, and how two
such lists differ.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, repeat, takewhile
from operator import is_
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")
Same = Callable[[Any, Any], bool]


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


def ends_of(before: Sequence[Any], after: Sequence[Any], same: Same = is_) -> Ends:
    """How two lists differ at their ends; without a stretch in common, all their items do."""
    # The stretch begins where at least one of them does.
    starts = (
        chain(zip(range(len(before)), repeat(0)), zip(repeat(0), range(len(after))))
        if before and after
        else ()
    )
    first, second = next(
        (start for start in starts if same(before[start[0]], after[start[1]])), (0, 0)
    )
    length = sum(1 for _ in takewhile(bool, map(same, before[first:], after[second:])))
    return Ends(
        tuple(before[:first]),
        tuple(after[:second]),
        tuple(before[first + length :]),
        tuple(after[second + length :]),
    )


def oldest_of(
    items: Iterable[T], number: int, size: int, size_of: Callable[[T], int]
) -> tuple[T, ...]:
    """The oldest items, at least so many and of so many bytes; none where neither is above 0."""
    going = []
    for item in items:
        if number <= 0 >= size:
            break
        going.append(item)
        number -= 1
        size -= size_of(item)
    return tuple(going)
