"""How the ends of two lists differ that have a stretch in common, such as a log at two times: it drops old items."""

from collections.abc import Callable, Sequence
from itertools import chain, repeat, takewhile
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
    # The stretch begins where at least one of them does.
    starts = chain(zip(range(len(before)), repeat(0)), zip(repeat(0), range(len(after)))) if before and after else ()
    first, second = next((start for start in starts if same(before[start[0]], after[start[1]])), (0, 0))
    length = sum(1 for _ in takewhile(bool, map(same, before[first:], after[second:])))
    return Ends(
        tuple(before[:first]), tuple(after[:second]), tuple(before[first + length :]), tuple(after[second + length :])
    )
