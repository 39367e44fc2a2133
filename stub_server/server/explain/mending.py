"""Mends a request at the places where it violates the contract, and leaves the rest
as it was sent.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import orjson

from ...contract.document import Document
from ...contract.schema import Schemas, Validator
from ...contract.source import Json
from ...core.problem import Detail
from ...core.record import ABSENT, Body
from ...core.text import nearest
from ...domain.cpf import cpf_with_check_digits
from ...domain.documents import cnpj_with_check_digits, normalise

_LONGEST = 100_000  # characters of a text that are looked at
_UNSENDABLE = re.compile("[\0\ud800-\udfff]")
_STEP = re.compile(r"\[([0-9]+)\]|([^.\[\]]+)")


class Mender:
    """Mends by the schemas of one contract. One per server."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self.document, self.resolve, self._schemas = document, document.resolve, schemas
        self._compiled: dict[bytes, Validator] = {}
        self.rules: Body = document.schema("ErrorCode").get("x-rules", {})
        """The contract's rules by error code."""

    def accepts(self, schema: Json, value: Any) -> bool:
        """Whether a value is valid by a schema of the contract."""
        key = orjson.dumps(schema, option=orjson.OPT_NON_STR_KEYS)
        if key not in self._compiled:
            self._compiled[key] = self._schemas.compile(schema, request=True)
        return self._compiled[key].is_valid(value)

    def value(self, schema: Json, value: Any, now: str, example: Any = ABSENT) -> Any:
        """The nearest value that a schema accepts, ABSENT if none was found.

        `now` is a date-time that may be used, `example` what the contract shows in this place.
        """
        chosen = self.resolve((schema.get("oneOf") or [schema])[0])
        for candidate in chain(like(chosen, value, now), [example], samples(chosen, now)):
            if candidate not in (value, ABSENT) and self.accepts(schema, candidate):
                return candidate
        return ABSENT

    def mend(self, schema: Json, request: Body, entry: Detail, now: str, example: Any) -> None:
        """Replace the value at the place of a violation, or leave it out. A member that is unknown
        gets the most similar name.
        """
        place: list[str | int] = [entry["in"]]
        if entry["field"] != entry["in"]:  # else it is the body itself
            place += steps(entry["field"]) or [""]
        *above, last = place
        holder: Any = at(request, above)
        value = at(holder, [last])
        # a list may have been cut, and a long or odd name is no path
        has_place = value is not ABSENT and isinstance(holder, list)
        if not has_place and not isinstance(holder, dict):
            return
        better: Any = ABSENT
        if entry["code"].startswith("unknown"):
            members = self.document.schema_at(schema, above).get("properties", {})
            similar = nearest(str(last), [name for name in members if name not in holder])
            if similar is not None:
                holder[similar] = value
        else:
            wanted = self.document.schema_at(schema, place)
            if entry["code"] == "invalid_document":
                wanted = {**wanted, "format": "document"}
            better = self.value(wanted, value, now, at(example, place))
        if better is not ABSENT:
            holder[last] = deepcopy(better)
        elif value is not ABSENT:
            del holder[last]


def steps(field: str) -> list[str | int]:
    """`items[0].amount` -> `["items", 0, "amount"]`."""
    found: list[str | int] = []
    for index, name in _STEP.findall(field):
        found.append(int(index) if index else name)
    return found


def at(value: Any, path: Sequence[str | int]) -> Any:
    """The part of a value at a place; ABSENT where it has none."""
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return ABSENT
    return value


# -- values of one text, number or truth value that a schema accepts


def like(schema: Json, value: Any, now: str) -> Iterator[Any]:
    """Candidates for a schema's type, made from a value.

    The schema itself decides which of them it accepts.
    """
    kind, text = schema.get("type"), str(value)[:_LONGEST]
    if value is ABSENT:
        return
    if "enum" in schema:
        yield nearest(text, list(map(str, schema["enum"]))) or ABSENT
    elif kind == "boolean":
        yield text.strip().lower() not in ("false", "0", "no")
    elif kind in ("integer", "number"):
        yield from _numbers(schema, text)
    elif kind == "string" and type(value) in (str, int, float):
        yield from _texts(schema, text, now)
    elif kind == "array":
        items = value if isinstance(value, list) else [value]
        distinct = {orjson.dumps(item): item for item in items}
        yield [*distinct.values()][: schema.get("maxItems")]


def samples(schema: Json, now: str) -> Iterator[Any]:
    """Candidates that are made from the schema alone: its example, its default, and what
    its limits suggest.
    """
    yield from (schema[name] for name in ("example", "default") if name in schema)
    yield from schema.get("enum") or ()
    if schema.get("format") == "date-time":
        yield now
    yield from (schema[name] for name in ("minimum", "maximum") if name in schema)


def _numbers(schema: Json, text: str) -> Iterator[int | float]:
    """The number of a text such as `49.90`, `49,90` or `R$ 1.249,90` within the limits,
    if it has one.
    """
    text = text.replace("R$", "").strip()[:40]
    if "," in text:
        text = text.replace(".", "").replace(",", ".")
    with suppress(ValueError, OverflowError):  # such as nan and inf
        number = round(float(text), 2)
        fit = min(max(number, schema.get("minimum", number)), schema.get("maximum", number))
        if schema["type"] == "integer" or fit == int(fit):
            fit = int(fit)
        yield fit


def _texts(schema: Json, text: str, now: str) -> Iterator[str]:
    plain = _UNSENDABLE.sub("", text).strip()
    yield from _formatted(schema.get("format"), plain, now)
    for candidate in (plain, plain.upper(), re.sub(r"[^0-9]", "", plain)):
        if cut := candidate[: schema.get("maxLength", _LONGEST)]:
            yield cut.ljust(schema.get("minLength", 0), cut[-1])


def _formatted(kind: str | None, text: str, now: str) -> Iterator[str]:
    if kind == "document":
        digits = normalise(text)
        with suppress(ValueError):
            if len(digits) == 11:
                yield cpf_with_check_digits(digits[:-2])
            if len(digits) == 14:
                yield cnpj_with_check_digits(digits[:-2])
    elif kind == "date-time":
        with suppress(ValueError):
            moment = datetime.fromisoformat(text)
            yield moment.replace(tzinfo=moment.tzinfo or UTC).isoformat().replace("+00:00", "Z")
        yield now
    elif kind == "uri":
        yield "https://" + text.rpartition("://")[2]
    elif kind == "email":
        yield f"{text.partition('@')[0]}@example.com"
