"""Folds case and accents of text, for searching and comparing, and guesses which known word was meant."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import lru_cache

_LONGEST_GUESSED = 64


def counted(number: int, noun: str) -> str:
    """`1 place`, `2,000 places`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_PUNCTUATION = str.maketrans("", "", " ()+-./")
NUMBERS_END = "\0\0"  # no text that is searched for may contain NUL
_HEADER_SAFE = re.compile(r"[A-Za-z0-9_.\[\]-]{1,40}").fullmatch


def folded(text: str) -> str:
    """Text without case and accents, for `contains` filters and unique names."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join([c for c in decomposed if not unicodedata.combining(c)])


search_key = lru_cache(maxsize=8192)(folded)
"""The same, remembered: for names and e-mail addresses, which recur."""


def unmasked(text: str) -> str:
    """Documents and telephones without case and the punctuation in which they are written."""
    return folded(text).translate(_PUNCTUATION)


search_numbers = lru_cache(maxsize=8192)(unmasked)
"""The same, remembered: for those of a customer, which recur with each order."""


def finder(wanted: str) -> Callable[[str], bool]:
    """Whether a record's folded text contains what is wanted; what stands before `NUMBERS_END` contains it unmasked."""
    words, numbers = folded(wanted), unmasked(wanted)
    if not numbers or numbers == words:
        return lambda text: words in text
    return lambda text: words in text or text.find(numbers, 0, max(text.rfind(NUMBERS_END), 0)) >= 0


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The most similar known word, or None."""
    if len(word) > _LONGEST_GUESSED:
        return None
    by_fold = {name.lower().replace("_", ""): name for name in known}
    found = get_close_matches(word.lower().replace("_", ""), by_fold, 1, 0.7)
    return by_fold[found[0]] if found else None


def warning_of(kind: str, name: str, meant: str | None = None) -> str:
    """A warning about an unknown name; `meant` is the known one that it probably is."""
    return f"{kind}:{name if _HEADER_SAFE(name) else 'unnamed'}" + (f";nearest={meant}" if meant else "")
