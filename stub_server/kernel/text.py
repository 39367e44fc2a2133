"""Texts: words for people, patterns with `*` and `?`, and host names that mean this machine."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from ipaddress import IPv4Address, IPv6Address, ip_address

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


def warning_of(kind: str, name: str, known: str | None = None) -> str:
    """A warning about an unknown name; `known` is the one that it probably is."""
    return f"{kind}:{name if _HEADER_SAFE(name) else 'unnamed'}" + (f";nearest={known}" if known else "")


LONGEST = 1_024
"""Characters of a text that are looked at: a hundred globs over a long header would hold up everybody."""


def glob(pattern: str, text: str) -> bool:
    """Whether a text fits a pattern.

    Not by a regular expression: compiling one costs whoever sends another pattern each time a hundred times as much.
    """
    text = text[:LONGEST]
    first, *others = pattern.split("*")
    if not others:
        return len(text) == len(first) and _is_at(first, text, 0)
    last = others.pop()
    at, end = len(first), len(text) - len(last)
    if at > end or not _is_at(first, text, 0) or not _is_at(last, text, end):
        return False
    for piece in others:  # the first place of each is as good as any later one
        at = _after(piece, text, at, end)
        if at < 0:
            return False
    return True


def _is_at(piece: str, text: str, at: int) -> bool:
    if "?" not in piece:
        return text.startswith(piece, at)
    return all(wanted in ("?", found) for wanted, found in zip(piece, text[at : at + len(piece)], strict=True))


def _after(piece: str, text: str, start: int, end: int) -> int:
    """Where the first place of a piece between two positions ends; -1 without any."""
    if "?" not in piece:
        found = text.find(piece, start, end)
        return found if found < 0 else found + len(piece)
    # Every beginning of the piece that ends at a character is a bit (Baeza-Yates and Gonnet, 1992: shift-and).
    everywhere = sum(1 << place for place, wanted in enumerate(piece) if wanted == "?")
    places: dict[str, int] = {}
    for place, wanted in enumerate(piece):
        if wanted != "?":
            places[wanted] = places.get(wanted, everywhere) | 1 << place
    open_, whole = 0, 1 << len(piece) - 1
    for place in range(start, end):
        open_ = (open_ << 1 | 1) & places.get(text[place], everywhere)
        if open_ & whole:
            return place + 1
    return -1


Address = IPv4Address | IPv6Address

_LOCAL_NAME = re.compile(r"(?:[A-Za-z0-9_-]+\.)*localhost").fullmatch


def is_local(name: str | None) -> bool:
    """Whether a host name means this machine. `127.0.0.1.example.com` does not, nor what is no name: `a/.localhost`."""
    if name is None:
        return False
    if _LOCAL_NAME(name):
        return True
    try:
        return unmapped(ip_address(name)).is_loopback
    except ValueError:
        return False


def unmapped(address: Address) -> Address:
    """The IPv4 address that `::ffff:192.0.2.1` stands for; any other as it is."""
    return getattr(address, "ipv4_mapped", None) or address
