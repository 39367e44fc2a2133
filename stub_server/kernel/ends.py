"""How the ends of two lists differ that have a stretch in common, such as a log at two times: it drops old items."""

from collections.abc import Callable, Sequence
from itertools import chain
from operator import is_
from typing import Any, NamedTuple

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
    first, second = _beginning(before, after, same)
    rest = zip(before[first:], after[second:], strict=False)
    length = next((place for place, (one, other) in enumerate(rest) if not same(one, other)), None)
    if length is None:
        length = min(len(before) - first, len(after) - second)
    if not length:
        return Ends((), (), tuple(before), tuple(after))
    return Ends(
        tuple(before[:first]), tuple(after[:second]), tuple(before[first + length :]), tuple(after[second + length :])
    )


def _beginning(before: Sequence[Any], after: Sequence[Any], same: Same) -> tuple[int, int]:
    """Where the common stretch begins in each: at the beginning of at least one of them."""
    if before and after:
        head = after[0]
        for place, item in enumerate(before):
            if same(item, head):
                return place, 0
        head = before[0]
        for place, item in enumerate(after):
            if same(item, head):
                return 0, place
    return len(before), len(after)


def size_of(ends: Ends, size: Callable[[Any], int]) -> int:
    return sum(map(size, chain(*ends)))
