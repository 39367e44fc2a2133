"""Numbers in a query: how their text is read, and told again in a refusal."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from ..contract.source import Json
from ..kernel.problem import Detail

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)").fullmatch
# Larger integers are read as this, which is refused as they would be: no maximum is that large.
_MOST = 10**18
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?").fullmatch
_SHOWN = 80  # characters of a number


def cast_of(schema: Json) -> Callable[[str], Any] | None:
    """How to convert a query text to its schema's type. Text that cannot be converted is kept, and refused later."""
    kind = schema.get("type")
    if kind == "integer":
        return _integer
    if kind == "number":
        return lambda text: float(text) if _NUMBER(text) else text
    if kind == "boolean":
        return lambda text: {"true": True, "false": False}.get(text, text)
    return None


def _integer(text: str) -> int | str:
    if _INTEGER(text) is None:
        return text
    if len(text) > 18:
        return -_MOST if text[0] == "-" else _MOST
    return int(text)


def as_sent(entry: Detail, query: bytes) -> Detail:
    """A violation that repeats a number as the query has it, if it was read as another."""
    number, _, rest = entry["message"].partition(" ")
    if entry["in"] != "query" or number not in (str(_MOST), str(-_MOST)):
        return entry
    sent = dict(parse_qsl(query.decode("latin-1"))).get(entry["field"], number)
    return entry | {"message": f"{sent if len(sent) <= _SHOWN else sent[:_SHOWN] + '…'} {rest}"}
