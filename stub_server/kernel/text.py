"""Folds case and accents of text, for searching and comparing, and guesses which known word was meant."""

import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache

_LONGEST_GUESSED = 64


@lru_cache(maxsize=8192)
def search_key(text: str) -> str:
    """Text without case and accents, for `contains` filters and unique names."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join([c for c in decomposed if not unicodedata.combining(c)])


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The most similar known word, or None."""
    if len(word) > _LONGEST_GUESSED:
        return None
    by_fold = {name.lower().replace("_", ""): name for name in known}
    found = get_close_matches(word.lower().replace("_", ""), by_fold, 1, 0.7)
    return by_fold[found[0]] if found else None
