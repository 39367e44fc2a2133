"""Texts without secrets: what looks like a key or token of this server. Every scan takes time linear in the text."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote

REDACTED = "[redacted]"
LEFT_OUT = REDACTED.encode()
"""What is kept of a body that is left out as a whole."""
_SHOWN = 12  # characters of a secret that are enough to know it by: refusals repeat values cut short
_BLOCK = 16  # characters that are compared at once
_MOST_READINGS = 8  # of a text that is percent-encoded again and again
# Each begins with letters that are found fast, and takes what follows without going back.
_KEYS = (
    re.compile(r"sk_(?<![A-Za-z0-9]sk_)[a-z]++_[A-Za-z0-9]{6,}+"),
    re.compile(r"whsec_(?<![A-Za-z0-9]whsec_)[A-Za-z0-9+/=]{6,}+"),
)
# Takes the whole word also where it is no token: the search goes on behind it, not in it.
_TOKEN = re.compile(r"eyJ[\w-]*+(\.[\w-]++\.[\w-]*+)?", re.ASCII)


def shapeless(text: str) -> str:
    """A text without private keys, signing keys and tokens of this server."""
    for pattern in _KEYS:
        text = pattern.sub(REDACTED, text)
    return _TOKEN.sub(lambda found: REDACTED if found[1] else found[0], text)


def has_shape(text: str) -> bool:
    """Whether a text has such a value, also percent-encoded."""
    return hides(text, lambda reading: shapeless(reading) != reading)


def hides(text: str, is_secret: Callable[[str], bool]) -> bool:
    """Whether a text is a secret as it stands, or percent-decoded once or several times.

    One that is still encoded after that counts as one too.
    """
    for _ in range(_MOST_READINGS):
        if is_secret(text):
            return True
        if "%" not in text or (decoded := unquote(text, "latin-1")) == text:
            return False
        text = decoded
    return True


def without(text: str, value: str) -> str:
    """A text without every occurrence of the beginning of a value, each as far as they are equal."""
    pieces: list[str] = []
    done, at = 0, text.find(value[:_SHOWN])
    while at >= 0:
        pieces += (text[done:at], REDACTED)
        done = at + _equal(text, at, value)
        at = text.find(value[:_SHOWN], done)
    return "".join(pieces) + text[done:]


def _equal(text: str, at: int, value: str) -> int:
    """How many characters a text has from a place on in common with a value, whose beginning stands there."""
    end = min(_SHOWN, len(value))
    while end + _BLOCK <= len(value) and text[at + end : at + end + _BLOCK] == value[end : end + _BLOCK]:
        end += _BLOCK
    while end < len(value) and at + end < len(text) and text[at + end] == value[end]:
        end += 1
    return end
