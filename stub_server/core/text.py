"""Texts: words for people, patterns with `*` and `?`, and host names that mean this machine."""

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from fnmatch import translate
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any
from unicodedata import combining, normalize

SAFE_IN_PATHS = "/:@!$&'()*+,;=~-._"  # what a path may have besides letters and digits
_LONGEST_GUESSED = 64
_HEADER_SAFE = re.compile(r"[A-Za-z0-9_.\[\]-]{1,40}").fullmatch


def counted(number: int, noun: str) -> str:
    """`1 place`, `2,000 places`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@lru_cache(maxsize=4096)
def _bare(character: str) -> str:
    return "".join([part for part in normalize("NFKD", character) if not combining(part)])


def without_accents(text: str) -> str:
    """Text without accents, its letters and digits in their simplest form.

    Each character is decomposed by itself: of a whole text the accents would be sorted, in time
    that grows with the square of their number.
    """
    return "".join(map(_bare, text))


def shortened(text: str, most: int) -> str:
    """A text of at most so many characters, with `…` in place of what is left out."""
    if len(text) <= most:
        return text
    return f"{text[:most]}…"


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The most similar known word, or None."""
    if len(word) > _LONGEST_GUESSED:
        return None
    by_fold = {name.lower().replace("_", ""): name for name in known}
    found = get_close_matches(word.lower().replace("_", ""), by_fold, 1, 0.7)
    return by_fold[found[0]] if found else None


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """A sentence with the known name that is nearest to another one, or nothing."""
    guess = nearest(name, known)
    return f" Did you mean {guess}?" if guess else ""


def warning_of(kind: str, name: str, known: str | None = None) -> str:
    """A warning about an unknown name; `known` is the one that it probably is."""
    text = f"{kind}:{name if _HEADER_SAFE(name) else 'unnamed'}"
    if known:
        text += f";nearest={known}"
    return text


LONGEST = 1_024
"""Characters of a text that a pattern is matched with: a hundred patterns over a long header would
delay others.
"""


MOST_GLOBS = 2_048
"""Characters of the patterns with wildcards that one request may be compared with: each wildcard
takes 20 microseconds the first time, and each character up to two.
"""


def is_glob(text: str) -> bool:
    """Whether a text has wildcards."""
    return "*" in text or "?" in text


def glob(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern: `*` stands for any characters, `?` for one."""
    if not is_glob(pattern):  # of any length, and not to be compiled
        return pattern == text
    return _compiled(pattern)(text[:LONGEST]) is not None


@lru_cache(maxsize=512)  # the longest takes 65 KB; the module re keeps as many
def _compiled(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(translate(pattern.replace("[", "[[]"))).match


Address = IPv4Address | IPv6Address

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{0,5})?").fullmatch
_LOCAL_NAME = re.compile(r"(?:[A-Za-z0-9_-]+\.)*localhost").fullmatch


def is_local(name: str | None) -> bool:
    """Whether a host name means this machine.

    `127.0.0.1.example.com` does not, nor what is no name: `a/.localhost`.
    """
    if name is None:
        return False
    if _LOCAL_NAME(name):
        return True
    try:
        return unmapped(ip_address(name)).is_loopback
    except ValueError:
        return False


def host_name(header: str) -> str | None:
    """The name or address in a Host header, in lower case and without the port; None for
    any other text.
    """
    found = _HOST(header)
    if found is None:
        return None
    literal, name = found.groups()
    if literal is None:
        return str(name).lower().removesuffix(".") or None
    try:
        return str(IPv6Address(literal))
    except ValueError:
        return None


def unmapped(address: Address) -> Address:
    """The IPv4 address that `::ffff:192.0.2.1` stands for; any other as it is."""
    return getattr(address, "ipv4_mapped", None) or address


def printable(text: str) -> str:
    """Text with everything escaped that could move the cursor of a terminal."""
    return "".join(map(_printable, text))


def _printable(sign: str) -> str:
    if sign.isprintable():
        return sign
    return f"\\u{ord(sign):04x}"


def printable_lines(text: str) -> str:
    """Text of several lines with everything else escaped that could move a terminal's cursor."""
    return "\n".join(map(printable, text.split("\n")))


def json_text(value: Any) -> str:
    """A value as JSON in ASCII, which moves no cursor of a terminal."""
    import json

    return json.dumps(value)
