"""How values are shown: money, times with their distance, ids, and what differs in JSON."""

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import orjson
from flask import g

from ..core.clock import EARLIEST, LATEST, iso, parse_iso
from ..core.record import is_deeper_than

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_UNITS = (
    (86_400_000 * 365, "y"),
    (86_400_000, "d"),
    (3_600_000, "h"),
    (60_000, "min"),
    (1_000, "s"),
)
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z"
).fullmatch
_FIELD = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?)?"
).fullmatch
"""An instant as browsers send the field of a form: with minutes, with seconds."""
_ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(req|evt|msg|flt)_[0-9A-Za-z]+"
).fullmatch
_MONEY = re.compile(r"(amount|price|total|revenue|mrr|fee)", re.IGNORECASE)
_SHORTHAND = re.compile(r"\b(api|br|cpf|id|pix|qr|sku|url|utm)\b", re.IGNORECASE)
_NO_MONEY = re.compile(r"(count|quantity|_id|totalItems)", re.IGNORECASE)
_DEEPEST = 48  # levels: a request has at most 32, and is shown below others
_STAMPS = ("updatedAt", "updated_at")
ZONES = {"brasilia": ("Brasília", -3 * 3_600_000), "utc": ("UTC", 0)}
"""The zones in which a visitor may read times: name, and milliseconds from UTC.

Brasília has no summer time.
"""


class Change(NamedTuple):
    """A member that differs between two versions; None on a side that lacks it."""

    path: str
    before: str | None
    after: str | None


def _is_instant(text: str) -> bool:
    """Whether a text, which may be a stranger's, is an instant: `2026-99-99T00:00:00Z` is none."""
    if not _INSTANT(text):
        return False
    try:
        parse_iso(text)
    except ValueError:
        return False
    return True


def money(value: Any) -> str:
    """49.9 -> R$ 49,90."""
    if not _is_number(value):
        return str(value)
    whole = f"{value:,.2f}".replace(",", "\0").replace(".", ",").replace("\0", ".")
    return f"R$\u00a0{whole}"


def ahead_of_utc() -> int:
    """Milliseconds by which the visitor's clocks are ahead."""
    return ZONES[g.get("zone", "brasilia")][1]


def in_zone(text: str) -> str:
    """An instant as clocks of the visitor's zone show it, `2026-11-20T11:32:05.123`."""
    return _moved(text, ahead_of_utc()).removesuffix("Z")


def _moved(text: str, by: int) -> str:
    """An instant that is so many ms from another one, but none outside the years 1 to 9999."""
    return iso(min(max(parse_iso(text) + by, EARLIEST), LATEST))


def in_field(text: str) -> str:
    """An instant as a field of a form has it, in the visitor's zone; other texts as they are."""
    return in_zone(text)[:19] if _is_instant(text) else text


def from_zone(text: str) -> str:
    """An instant in UTC of what a field of a form has, which is in the visitor's zone; other texts
    as they are.
    """
    if not _FIELD(text):
        return text
    whole = text if text.count(":") == 2 else f"{text}:00"
    try:
        return _moved(f"{whole}Z", -ahead_of_utc())
    except ValueError:
        return f"{whole}Z"


def clock_time(text: str | None) -> str:
    """An instant without its distance: `20 Nov 2026, 11:32:05`."""
    if not text or not _is_instant(text):
        return text or "\N{EN DASH}"
    local = in_zone(text)
    return f"{int(local[8:10])} {_MONTHS[int(local[5:7]) - 1]} {local[:4]}, {local[11:19]}"


def distance(text: str | None) -> str:
    """How far an instant is from the sandbox's now: `in 3 d`, `2 h ago`."""
    if not text or not _is_instant(text) or "clock" not in g:
        return ""
    away = parse_iso(text) - parse_iso(g.clock["now"])
    found = next(
        (f"{abs(away) // size} {unit}" for size, unit in _UNITS if abs(away) >= size), None
    )
    if found is None:
        return "now"
    return f"in {found}" if away > 0 else f"{found} ago"


def amount(content: float, name: str = "") -> str:
    """A number, by its name an amount of money."""
    return money(content) if _is_money(content, name) else f"{content:,}"


def cut(text: str, most: int = 80) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def plain(content: Any) -> str:
    """JSON in one line."""
    return orjson.dumps(content).decode()


def words(name: str) -> str:
    """`totalAmount` -> `Total amount`, `next_billing_at` -> `Next billing at`."""
    found = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()
    return _SHORTHAND.sub(lambda match: match[0].upper(), found[:1].upper() + found[1:])


def singular(kind: str) -> str:
    """A kind of records as a word for one: `webhook_logs` -> `webhook log`."""
    return kind.removesuffix("s").replace("_", " ")


def pretty(content: Any) -> str:
    """JSON with a line for each value; in one line if it is nested deeper than any of the API: its
    indentation would take hundreds of times its length. A text that is none as it is.
    """
    if isinstance(content, str):
        return content
    if is_deeper_than(content, _DEEPEST):
        return plain(content)
    return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()


def in_one_line(content: Any) -> str:
    """JSON in one line; a text that is none as it is."""
    return content if isinstance(content, str) else plain(content)


def read_json(text: str) -> Any:
    """The value of a text that is JSON, else the text; also of JSON that is nested too deep to be
    written again.
    """
    try:
        value = orjson.loads(text)
        orjson.dumps([value])  # it may be sent as a member of a body
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return text
    return value


def changes(before: Any, after: Any) -> list[Change]:
    """The members in which two versions of a record differ, but for the one that changes with every
    version.

    There are none where one of the versions is absent.
    """
    if before is None or after is None:
        return []
    return [each for each in _changes("", before, after) if each.path not in _STAMPS]


def _changes(path: str, before: Any, after: Any) -> Iterator[Change]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            yield from _changes(
                f"{path}.{name}" if path else name, before.get(name), after.get(name)
            )
    elif isinstance(before, list) and isinstance(after, list):
        for place, (one, other) in enumerate(zip_longest(before, after)):
            yield from _changes(f"{path}[{place}]", one, other)
    else:
        yield Change(path, _text_of(before, path), _text_of(after, path))


def _text_of(content: Any, path: str) -> str | None:
    if content is None:
        return None
    if isinstance(content, str):
        return clock_time(content)
    return money(content) if _is_money(content, path.rpartition(".")[2]) else plain(content)


def _is_money(content: Any, name: str) -> bool:
    return _is_number(content) and bool(_MONEY.search(name)) and not _NO_MONEY.search(name)


def _is_number(content: Any) -> bool:
    return isinstance(content, int | float) and not isinstance(content, bool)


FILTERS = {
    each.__name__: each
    for each in (
        money,
        clock_time,
        distance,
        amount,
        cut,
        read_json,
        words,
        singular,
        in_zone,
        in_field,
        in_one_line,
        pretty,
    )
}
TESTS = {"instant": _is_instant, "identifier": lambda text: bool(_ID(text))}
"""What the form of a text says."""
