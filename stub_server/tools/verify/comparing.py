"""Values of JSON as they are compared."""

from typing import Any

from ...contract.formats import is_date_time
from ...core.clock import SECOND, parse_iso


def folded(value: Any) -> Any:
    """An instant in seconds since 1970, a text without its case; any other value as it is."""
    instant = instant_of(value)
    if instant is not None:
        return instant
    return value.casefold() if isinstance(value, str) else value


def instant_of(value: Any) -> float | None:
    """The seconds since 1970 of a text that is an instant; None for any other value."""
    is_instant = isinstance(value, str) and is_date_time(value)
    return parse_iso(value) / SECOND if is_instant else None


def is_number(value: Any) -> bool:
    """Whether a value is a number of JSON."""
    return type(value) in (int, float)


def is_like(value: Any, other: Any) -> bool:
    """Whether two values have one type of JSON, or one is null where the other is plain."""
    if is_number(value) and is_number(other):
        return True
    is_null = None in (value, other) and not isinstance(other, dict | list)
    return is_null or type(value) is type(other)
