"""JSON and what else strangers may have made long, as far as it fits into a page."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from flask import g
from markupsafe import Markup, escape

from .filters import Change, cut, in_one_line, pretty

_MOST_SHOWN = 8_192  # characters of a body that a page shows; it links to the rest
_ROOM = 37 << 10  # bytes of HTML of bodies, differences and long texts in a page
_OF_A_LINE = len('<span class="line"></span>')
_OF_A_TEXT, _OF_A_CHANGE = 80, 180  # bytes of HTML beside them
T = TypeVar("T")
_MOST_BROKEN = 65_536  # characters that are broken into lines: deep ones begin with many blanks
# A text that does not end is one token too: otherwise each quotation mark in it would be searched
# from again.
_TOKEN = re.compile(
    r'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))(:?)|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)',
    re.DOTALL,
)


class Shown(NamedTuple):
    """JSON as a page shows it; `is_cut` where it is longer than that."""

    lines: list[Markup]
    is_cut: bool


def coloured(text: str) -> Markup:
    """A piece of JSON with names, texts and numbers told apart."""
    found, at = list[str](), 0
    for match in _TOKEN.finditer(text):
        found.append(escape(text[at : match.start()]))
        at = match.end()
        quoted, colon, word, number = match.groups()
        kind = "name" if colon else "text" if quoted else "word" if word else "number"
        found.append(
            f'<span class="j-{kind}">{escape(quoted or word or number)}</span>{colon or ""}'
        )
    found.append(escape(text[at:]))
    return Markup("".join(found))  # noqa: S704 - every piece of the text is escaped


def lines(content: Any, most: int | None = None) -> Shown:
    """JSON line by line, as far as it fits into a page, or so many characters of it."""
    text = in_one_line(content)
    if len(text) <= _MOST_BROKEN:
        text = pretty(content)
    most_shown = most or _MOST_SHOWN
    pieces = text[:most_shown].split("\n")
    every = map(coloured, pieces)
    shown = [*every] if most else [*_first(every, lambda line: _size(line) + _OF_A_LINE)]
    return Shown(shown, len(shown) < len(pieces) or len(text) > most_shown)


def fitting(found: list[Change]) -> list[Change]:
    """The first of the members that differ, as many as fit into a page where there is more."""
    return [*_first(found, _size_of_change)]


def _size_of_change(change: Change) -> int:
    texts = (change.path, cut(change.before or "", 200), cut(change.after or "", 200))
    return _OF_A_CHANGE + sum(map(_size, texts))


def _first(every: Iterable[T], size_of: Callable[[T], int]) -> Iterator[T]:
    """The first of several, as many as fit into a page where there is more."""
    left = _room() * 2 // 3
    for each in every:
        size = size_of(each)
        if size > left:
            return
        yield each
        left -= size
        g.room -= size


def fit(text: Markup | str) -> Markup | str:
    """A text as far as it fits into a page with many of them; HTML as it is."""
    if isinstance(text, Markup):
        return text
    most = _room() // 64
    size = _size(text)
    if size > most:
        text = cut(text, len(text) * most // size + 1)
    g.room -= _size(text) + _OF_A_TEXT
    return text


def fits(text: str) -> bool:
    """Whether a text that is of use only as a whole fits into a page."""
    size = _size(text)
    if size > _room():
        return False
    g.room -= size
    return True


def _room() -> int:
    """Bytes of HTML that what strangers may have made long still has on this page."""
    if "room" not in g:
        g.room = _ROOM
    room: int = max(0, g.room)
    return room


def _size(text: str) -> int:
    return len(escape(text).encode())


ROOM_FILTERS = {each.__name__: each for each in (lines, fitting, fit, fits)}
