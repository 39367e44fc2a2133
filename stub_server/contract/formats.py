"""The contract's string formats, each a function that accepts or rejects a string."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..core.clock import LATEST, parse_iso

Format = Callable[[str], bool]

_DATE_TIME = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)"
    r"(?:\.[0-9]+)?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
).fullmatch
_BELOW_MS = re.compile(r"\.[0-9]{3}([0-9]+)").search
UUID = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
# Room for an IPv6 address with an IPv4 tail and a prefix length; zone names are not supported.
_LONGEST_NETWORK = 50
_IS_NO_PREFIX = re.compile(r"/(?:0[0-9]|[0-9]*[^0-9])").search
is_uuid = re.compile(UUID[1:-1]).fullmatch


def is_date_time(text: str) -> bool:
    """An RFC 3339 date-time with an offset; a leap second only at the end of a day in UTC."""
    if _DATE_TIME(text) is None:
        return False
    try:
        parse_iso(text)
    except (ValueError, OverflowError):
        return False
    return True


def range_end_ms(text: str) -> int:
    """A date-time rounded up to a whole millisecond, as either end of a range uses it."""
    ms = parse_iso(text)
    finer = _BELOW_MS(text)
    if finer is not None and finer[1].strip("0"):
        return min(ms + 1, LATEST)
    return ms


def end_of_range(query: Mapping[str, str], name: str) -> int | None:
    """An end of a range, in ms; None where it is open."""
    return range_end_ms(query[name]) if name in query else None


def is_ip_network(text: str) -> bool:
    """An IPv4 or IPv6 address or network in CIDR notation, host bits allowed; no netmask,
    no padded length.
    """
    if len(text) > _LONGEST_NETWORK or not text.isascii() or _IS_NO_PREFIX(text):
        return False
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


STRICT = frozenset(("document", "ip-network"))
"""Formats equivalent to the `pattern` and `not` beside them.

Generators that ignore the format use those two.
"""


READ: Mapping[str, Format] = {"date-time": is_date_time, "ip-network": is_ip_network}
"""The formats of requests that rules read, and cannot do without."""


class Formats(NamedTuple):
    """The formats that validators need functions for: of requests, and of what the server answers
    and stores.
    """

    requests: Mapping[str, Format]
    responses: Mapping[str, Format]


def formats(is_document: Format, is_stored_document: Format) -> Formats:
    """`is_document` is the rule for a CPF, CNPJ or passport that is sent, `is_stored_document` for
    one that is stored.

    Requests use our check of date-times, responses the validator's own.
    """
    stored = {"document": is_stored_document, "ip-network": is_ip_network}
    return Formats(stored | {"document": is_document, "date-time": is_date_time}, stored)
