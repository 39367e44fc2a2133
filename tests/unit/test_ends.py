"""Two lists that have a stretch in common: what is at their ends leads from one to the other and back."""

from collections import deque
from itertools import product
from operator import eq

import pytest

from stub_server.kernel.ends import Ends, ends_of

STORY = [object() for _ in range(8)]
OTHER = [object() for _ in range(8)]


def led(before: list[object], ends: Ends) -> list[object]:
    """The list that the ends lead to."""
    items = deque(before)
    for gone in ends.newest_before:
        assert gone is not None
        items.pop()
    for _ in ends.oldest_before:
        items.popleft()
    items.extendleft(reversed(ends.oldest_after))
    items.extend(ends.newest_after)
    return list(items)


def test_ends_lead_there_and_back_whatever_the_lists_have_in_common() -> None:
    """Every window of one story and of one that went another way after some time, empty ones included."""
    tried = 0
    for start, end, first, last, fork in product(range(5), range(9), range(5), range(9), range(9)):
        before, after = STORY[start:end], (STORY[:fork] + OTHER[fork:])[first:last]
        ends = ends_of(before, after)
        assert after == led(before, ends)
        assert before == led(after, ends.mirrored)
        tried += 1
    assert tried == 5 * 9 * 5 * 9 * 9


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("abcd", "abcd", Ends()),
        ("abcd", "ab", Ends((), (), ("c", "d"), ())),
        ("cd", "abc", Ends((), ("a", "b"), ("d",), ())),
        ("abc", "bcxy", Ends(("a",), (), (), ("x", "y"))),
        ("ab", "xy", Ends((), (), ("a", "b"), ("x", "y"))),
        ("", "a", Ends((), (), (), ("a",))),
    ],
)
def test_what_is_in_common_is_not_named(before: str, after: str, expected: Ends) -> None:
    assert expected == ends_of(before, after, eq)
