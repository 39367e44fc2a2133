"""Globs: what fits them, and that no pattern costs more than its text."""

from fnmatch import fnmatchcase
from typing import SupportsIndex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stub_server.kernel.text import LONGEST, glob

PATTERNS = st.text("ab?*", max_size=12)
TEXTS = st.text("abc", max_size=16)


@pytest.mark.check
@settings(max_examples=2_000, deadline=None)
@given(PATTERNS, TEXTS)
def test_a_glob_means_what_it_means_in_a_shell(pattern: str, text: str) -> None:
    """As fnmatch has it, which makes a regular expression of every pattern."""
    assert fnmatchcase(text, pattern) == glob(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("", "", True),
        ("", "a", False),
        ("*", "", True),
        ("?", "", False),
        ("[a]", "[a]", True),
        ("[a]", "a", False),
        ("a*b?d", "a\n-bxd", True),
        ("*ab*ab*", "aab", False),
        ("a" * LONGEST + "*", "a" * LONGEST + "b", True),
        ("*b", "a" * LONGEST + "b", False),
    ],
)
def test_brackets_and_dots_are_themselves_and_long_texts_are_cut(pattern: str, text: str, fits: bool) -> None:
    assert fits == glob(pattern, text)


def test_the_worst_pattern_is_looked_for_once_along_the_text() -> None:
    """A character of the text is read as often as there are stars, at most, and not once for each place of a piece."""

    class Counting(str):
        __slots__ = ()
        read = 0

        def __getitem__(self, place: SupportsIndex | slice) -> str:
            if isinstance(place, slice):
                return self
            Counting.read += 1
            return str.__getitem__(self, place)

    assert not glob("*" + "?a" * 90 + "?b*", Counting("a" * LONGEST))
    assert LONGEST == Counting.read
