"""Values that a schema of one text, number or truth value accepts, those most like the given one first."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import orjson

from ..contract.source import Json
from ..domain.documents import cnpj_with_check_digits, cpf_with_check_digits, normalise
from ..kernel.text import nearest

_LONGEST = 100_000  # characters of a text that are looked at
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?:\.[0-9]{1,9})?))?").match
_HEX = re.compile(r"[^0-9a-fA-F]")
_LONE = re.compile("[\ud800-\udfff]")
NO = ("false", "0", "no")
_SAMPLES = ("A", "BR", "11", "987654321", "55", "x-header", "value", "1")
_OF_FORMAT = {
    "email": "marina@example.com",
    "uri": "https://example.com/",
    "uuid": "0b1f6c1e-6a0e-4f0b-9a53-6a3f3c1c9b55",
    "document": "52998224725",
    "ip-network": "203.0.113.0/24",
    "date": "2026-11-20",
}


def like(schema: Json, value: Any, now: str) -> Iterator[Any]:
    """Candidates for a schema's type, made from a value. The schema itself decides which of them it accepts."""
    options = schema.get("enum")
    if options:
        yield from _options([option for option in options if option is not None], value)
    elif schema.get("type") == "boolean":
        yield str(value).strip().lower() not in NO
    elif schema.get("type") in ("integer", "number"):
        yield from _numbers(schema, value)
    elif schema.get("type") == "string":
        yield from _texts(schema, value, now)


def samples(schema: Json, now: str) -> Iterator[Any]:
    """Candidates that are made from the schema alone: its example, its default, and what its limits suggest."""
    for name in ("example", "default"):
        if name in schema:
            yield schema[name]
    kind = schema.get("type")
    if schema.get("format") == "date-time":
        yield now
    if schema.get("format") in _OF_FORMAT:
        yield _OF_FORMAT[schema["format"]]
    if kind == "string":
        yield from _SAMPLES
        yield "x" * schema.get("minLength", 1)
    elif kind in ("integer", "number"):
        yield from _numbers(schema, 1)
    elif kind == "boolean":
        yield True


def _options(options: list[Any], value: Any) -> Iterator[Any]:
    texts = {str(option): option for option in options}
    similar = nearest(str(value)[:64], list(texts))
    if similar is not None:
        yield texts[similar]
    yield from options


def _numbers(schema: Json, value: Any) -> Iterator[int | float]:
    number = _number(value)
    if number is not None:
        low, high = schema.get("minimum"), schema.get("maximum")
        step = schema.get("multipleOf")
        for candidate in (number, _stepped(number, step), *(n for n in (low, high) if n is not None)):
            fit = candidate if low is None else max(low, candidate)
            fit = fit if high is None else min(high, fit)
            yield int(fit) if schema["type"] == "integer" else fit
    yield from (schema[name] for name in ("minimum", "maximum") if name in schema)
    yield 1


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        text = value.strip().replace("R$", "").strip()
        if "," in text:
            text = text.replace(".", "").replace(",", ".")
        try:
            value = float(text[:40])
        except ValueError:
            return None
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    return value if isinstance(value, int) else None


def _stepped(number: int | float, step: float | None) -> int | float:
    """The number rounded to a whole number of steps."""
    if not step or isinstance(number, int):
        return number
    unit = Decimal(str(step))
    return float((Decimal(str(number)) / unit).quantize(Decimal(1)) * unit) if abs(number) < 1e12 else number


def _texts(schema: Json, value: Any, now: str) -> Iterator[str]:
    if isinstance(value, str):
        text = value[:_LONGEST]
    elif isinstance(value, (int, float)):
        text = orjson.dumps(value).decode() if not isinstance(value, int) or abs(value) < 2**63 else str(value)[:40]
    else:
        return
    text = _LONE.sub("", text)
    yield text
    clean = text.replace("\0", "")
    most, least = schema.get("maxLength", _LONGEST), schema.get("minLength", 0)
    for candidate in (clean, clean.strip()):
        yield candidate
        yield candidate[:most]
        if candidate and len(candidate) < least:
            yield candidate.ljust(least, candidate[-1])
    yield from _formatted(schema.get("format"), clean.strip(), now)
    if most <= 1_000:  # a name, not an essay
        for candidate in (clean.strip().upper(), clean.strip().lower(), re.sub(r"[^0-9]", "", clean)):
            yield candidate
            yield candidate[:most]
        yield re.sub(r"[^\x21-\x7e]", "", clean)[:most]
        yield re.sub(r"[^A-Za-z0-9_.-]", "", clean)[:most].strip("._-")


def _formatted(kind: str | None, text: str, now: str) -> Iterator[str]:
    if kind == "document":
        yield from _documents(normalise(text))
    elif kind == "date-time":
        found = _DATE(text)
        if found is not None:
            clock = found[2] or "00:00:00"
            clock = clock if clock.count(":") == 2 else clock + ":00"
            yield f"{found[1]}T{clock}Z"
            yield f"{found[1]}T00:00:00Z"
        yield now
    elif kind == "uuid":
        digits = _HEX.sub("", text)
        if len(digits) == 32:
            yield "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    elif kind == "uri":
        yield "https://" + text.partition("://")[2] if "://" in text else "https://" + text
        yield re.sub(r"[\s#@]", "", "https://" + text)[:2_000]
    elif kind == "email":
        bare = re.sub(r"[^A-Za-z0-9@.+_-]", "", text)
        name, _, host = bare.partition("@")
        name = name.strip(".")[:60] or "marina"
        yield f"{name}@{host}"
        yield f"{name}@example.com"


def _documents(plain: str) -> Iterator[str]:
    """The same document with check digits that hold."""
    for length, make in ((11, cpf_with_check_digits), (14, cnpj_with_check_digits)):
        if len(plain) == length:
            try:
                yield make(plain[: length - 2])
            except ValueError:
                continue
        elif len(plain) < length:
            yield plain.zfill(length)
