"""JSON and what else strangers may have made long, as far as it fits into a page."""

from typing import Any, NamedTuple

from flask import g
from markupsafe import Markup, escape

from .filters import Change, cut, in_one_line, pretty

_MOST_SHOWN = 8_192  # characters of a body that a page shows; it links to the rest
_ROOM = 37 << 10  # bytes of HTML of bodies, differences and long texts in a page
_OF_A_TEXT, _OF_A_CHANGE = 80, 180  # bytes of HTML beside them
_MOST_BROKEN = 65_536  # characters that are broken into lines: deep ones begin with many blanks


class Shown(NamedTuple):
    """A text as a page shows it; `is_cut` where it is longer than that."""

    html: Markup
    is_cut: bool


def json_text(content: Any, most: int | None = None) -> Shown:
    """JSON as far as it fits into a page, or so many characters of it."""
    text = in_one_line(content)
    if len(text) <= _MOST_BROKEN:
        text = pretty(content)
    if most is not None:
        return Shown(escape(text[:most]), len(text) > most)
    shown = _fitted(text[:_MOST_SHOWN], _room() * 2 // 3)
    return Shown(shown.html, shown.is_cut or len(text) > _MOST_SHOWN)


def fitting(found: list[Change]) -> list[Change]:
    """The first of the members that differ, as many as fit into a page where there is more."""
    shown, most = list[Change](), _room() // 3
    for change in found:
        texts = (change.path, cut(change.before or "", 200), cut(change.after or "", 200))
        if not _takes(_OF_A_CHANGE + sum(map(_size, texts)), most):
            break
        shown.append(change)
    return shown


def fit(text: Markup | str) -> Markup | str:
    """A text as far as it fits into a page with many of them; HTML as it is."""
    if isinstance(text, Markup):
        return text
    shown = _fitted(text, _room() // 64)
    g.room -= _OF_A_TEXT
    return shown.html + "…" if shown.is_cut else shown.html


def fits(text: str) -> bool:
    """Whether a text that is of use only as a whole fits into a page."""
    return _takes(_size(text))


def _takes(size: int, most: int = 0) -> bool:
    """Take so many bytes of a page's room, unless less than `most` would be left."""
    if _room() - size < most:
        return False
    g.room -= size
    return True


def _fitted(text: str, most: int) -> Shown:
    """A text of at most so many bytes of HTML, which have then gone from the page's room."""
    html = str(escape(text)).encode()
    shown = html[:most].decode(errors="ignore")
    is_cut = len(html) > most
    if is_cut and shown.rfind("&") > shown.rfind(";"):  # in the middle of `&amp;`
        shown = shown[: shown.rfind("&")]
    g.room = _room() - len(html[:most])
    return Shown(Markup(shown), is_cut)  # noqa: S704 - it is escaped


def _room() -> int:
    """Bytes of HTML that what strangers may have made long still has on this page."""
    if "room" not in g:
        g.room = _ROOM
    room: int = max(0, g.room)
    return room


def _size(text: str) -> int:
    return len(escape(text).encode())


ROOM_FILTERS = {each.__name__: each for each in (json_text, fitting, fit, fits)}
