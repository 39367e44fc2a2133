"""Globs: what fits them."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stub_server.kernel.text import LONGEST, glob

PATTERNS = st.text("ab?*", max_size=12)
TEXTS = st.text("abc", max_size=16)


@pytest.mark.check
@settings(max_examples=500)
@given(PATTERNS, TEXTS)
def test_a_glob_means_what_it_means_in_a_shell(pattern: str, text: str) -> None:
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
