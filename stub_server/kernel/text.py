"""Words for people: counts, warnings, and a guess which known word was meant."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

_LONGEST_GUESSED = 64
_HEADER_SAFE = re.compile(r"[A-Za-z0-9_.\[\]-]{1,40}").fullmatch


def counted(number: int, noun: str) -> str:
    """`1 place`, `2,000 places`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


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
