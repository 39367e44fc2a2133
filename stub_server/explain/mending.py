"""Mends a value so that a schema of the contract accepts it, and stays as near to what was sent as possible."""

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import orjson

from ..contract.document import Document
from ..contract.schema import Schemas, Validator
from ..contract.source import Json
from ..domain.documents import cnpj_with_check_digits, cpf_with_check_digits, normalise
from ..kernel.text import nearest

ABSENT = object()
"""No value, as JSON's null is one."""
NO = ("false", "0", "no")
_LONGEST = 100_000  # characters of a text that are looked at
_UNSENDABLE = re.compile("[\0\ud800-\udfff]")
_SAMPLES = ("A", "BR", "11", "987654321", "55", "x-header", "value", "1")
_OF_FORMAT = {
    "email": "marina@example.com",
    "uri": "https://example.com/",
    "uuid": "0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55",
    "document": "52998224725",
    "ip-network": "203.0.113.0/24",
    "date": "2026-11-20",
}


class Unmendable(Exception):
    """No value was found that the schema accepts."""


class Mender:
    """Mends by the schemas of one contract. One per server.

    `now` is a date-time that may be used, `example` what the contract shows in the place of a value.
    """

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self.document, self.resolve, self._schemas = document, document.resolve, schemas
        self._compiled: dict[bytes, Validator] = {}

    def accepts(self, schema: Json, value: Any) -> bool:
        key = orjson.dumps(schema, option=orjson.OPT_NON_STR_KEYS)
        if key not in self._compiled:
            self._compiled[key] = self._schemas.compile(schema, request=True)
        return self._compiled[key].is_valid(value)

    def mend(self, schema: Json, value: Any, now: str, example: Any = ABSENT) -> Any:
        """The value, or the nearest one that the schema accepts. Raises Unmendable."""
        schema = self._chosen(self.resolve(schema), value)
        if value is None and schema.get("nullable"):
            return None
        if schema.get("type") == "object":
            return self._object(schema, value, now, example)
        if schema.get("type") == "array":
            return self._array(schema, value, now, example)
        likely = () if value is ABSENT else (value, *like(schema, value, now))
        for candidate in (*likely, *(() if example is ABSENT else (example,)), *samples(schema, now)):
            if self.accepts(schema, candidate):
                return candidate
        if schema.get("nullable"):
            return None
        raise Unmendable

    def _chosen(self, schema: Json, value: Any) -> Json:
        """The schema with its `allOf` merged, or the alternative that accepts the value, else the first one."""
        resolve = self.resolve
        options = schema.get("oneOf") or schema.get("anyOf")
        if options:
            fitting = (option for option in options if value is not ABSENT and self.accepts(option, value))
            return resolve(next(fitting, options[0]))
        for part in schema.get("allOf", ()):
            part = self._chosen(resolve(part), value)
            members = dict(schema["properties"])
            for name, member in part.get("properties", {}).items():
                members[name] = {**resolve(members.get(name, {})), **resolve(member)}
            required = [*schema.get("required", ()), *part.get("required", ())]
            schema = {**schema, "properties": members, "required": required}
        return schema

    def _object(self, schema: Json, value: Any, now: str, example: Any) -> Any:
        shown = example if isinstance(example, dict) else schema.get("example")
        shown = shown if isinstance(shown, dict) else {}
        if not isinstance(value, dict):
            if schema.get("nullable") and not isinstance(example, dict):
                return None
            value = shown
        named, required = schema.get("properties", {}), schema.get("required", ())
        rest = schema.get("additionalProperties", True)
        mended: dict[str, Any] = {}

        def add(name: str, member: Any) -> None:
            below = named.get(name, rest if isinstance(rest, dict) else {})
            mended[name] = self.mend(below, member, now, shown.get(name, ABSENT))

        for name, member in (_known(named, value) if rest is False else value).items():
            try:
                add(name, member)
            except Unmendable:
                if name in required:
                    raise
        least = schema.get("minProperties", 0)
        for name in (*required, *(name for name in shown if name in named), *named):
            if name not in mended and (name in required or len(mended) < least):
                add(name, ABSENT)
        return dict(islice(mended.items(), schema.get("maxProperties")))

    def _array(self, schema: Json, value: Any, now: str, example: Any) -> Any:
        items = schema.get("items", {})
        if not isinstance(value, list):
            if value is not ABSENT and value is not None and self.accepts(items, value):
                return [value]
            value = example if isinstance(example, list) else schema.get("example", [])
        shown = (example if isinstance(example, list) else []) or [ABSENT]
        mended: list[Any] = []
        for item in value[: schema.get("maxItems")]:
            with suppress(Unmendable):
                kept = self.mend(items, item, now, shown[0])
                if not schema.get("uniqueItems") or kept not in mended:
                    mended.append(kept)
        while len(mended) < schema.get("minItems", 0):
            mended.append(self.mend(items, ABSENT, now, shown[len(mended) % len(shown)]))
        return mended


def _known(named: Json, value: dict[str, Any]) -> dict[str, Any]:
    """The members that the contract names; an unknown one is renamed to an absent one of a similar name."""
    kept = {name: member for name, member in value.items() if name in named}
    for name, member in value.items():
        similar = None if name in named else nearest(name, [known for known in named if known not in kept])
        if similar is not None:
            kept[similar] = member
    return kept


# -- values of one text, number or truth value that a schema accepts


def like(schema: Json, value: Any, now: str) -> Iterator[Any]:
    """Candidates for a schema's type, made from a value. The schema itself decides which of them it accepts."""
    kind = schema.get("type")
    if options := {str(option): option for option in schema.get("enum") or () if option is not None}:
        similar = nearest(str(value)[:64], list(options))
        if similar is not None:
            yield options[similar]
    elif kind == "boolean":
        yield str(value).strip().lower() not in NO
    elif kind in ("integer", "number"):
        yield from _numbers(schema, str(value))
    elif kind == "string" and isinstance(value, str | int | float):
        yield from _texts(schema, str(value)[:_LONGEST], now)


def samples(schema: Json, now: str) -> Iterator[Any]:
    """Candidates that are made from the schema alone: its example, its default, and what its limits suggest."""
    yield from (schema[name] for name in ("example", "default") if name in schema)
    yield from schema.get("enum") or ()
    kind = schema.get("type")
    if schema.get("format") == "date-time":
        yield now
    if schema.get("format") in _OF_FORMAT:
        yield _OF_FORMAT[schema["format"]]
    if kind == "string":
        yield from _SAMPLES
        yield "x" * schema.get("minLength", 1)
    elif kind in ("integer", "number"):
        yield from _numbers(schema, "1")
    elif kind == "boolean":
        yield True


def _numbers(schema: Json, text: str) -> Iterator[int | float]:
    """The number of a text such as `49.90`, `49,90` or `R$ 1.249,90` within the limits, and the limits."""
    text = text.replace("R$", "").strip()[:40]
    if "," in text:
        text = text.replace(".", "").replace(",", ".")
    with suppress(ValueError):
        number = round(float(text), 2)
        fit = min(max(number, schema.get("minimum", number)), schema.get("maximum", number))
        if math.isfinite(fit):
            yield int(fit) if schema["type"] == "integer" or fit == int(fit) else fit
    yield from (schema[name] for name in ("minimum", "maximum") if name in schema)
    yield 1


def _texts(schema: Json, text: str, now: str) -> Iterator[str]:
    plain = _UNSENDABLE.sub("", text).strip()
    yield from _formatted(schema.get("format"), plain, now)
    for candidate in (plain, plain.upper(), plain.lower(), re.sub(r"[^0-9]", "", plain)):
        if cut := candidate[: schema.get("maxLength", _LONGEST)]:
            yield cut.ljust(schema.get("minLength", 0), cut[-1])


def _formatted(kind: str | None, text: str, now: str) -> Iterator[str]:
    if kind == "document":
        digits = normalise(text)
        with suppress(ValueError):
            if len(digits) in (11, 14):
                make = cpf_with_check_digits if len(digits) == 11 else cnpj_with_check_digits
                yield make(digits[:-2])
    elif kind == "date-time":
        with suppress(ValueError):
            moment = datetime.fromisoformat(text)
            yield moment.replace(tzinfo=moment.tzinfo or UTC).isoformat().replace("+00:00", "Z")
        yield now
    elif kind == "uri":
        yield "https://" + text.rpartition("://")[2]
    elif kind == "email":
        yield f"{text.partition('@')[0]}@example.com"
