"""Mends a value so that a schema of the contract accepts it, with as few changes as possible, and lists the changes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from ..contract.document import Document
from ..contract.schema import Schemas, Validator
from ..contract.source import Json
from ..domain.documents import cnpj_with_check_digits, cpf_with_check_digits, normalise
from ..kernel.text import nearest

_DEEPEST = 32
_MOST = 200  # changes that are listed; a body with more of them is mended all the same
ABSENT = object()
WHY = "The contract does not accept the value."
_LONGEST = 100_000  # characters of a text that are looked at
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?:\.[0-9]{1,9})?))?").match
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


class Change(NamedTuple):
    """One difference. `where` is a part of the request, or `before` for a call that is made first."""

    where: str
    from_: Any
    to: Any
    why: str


class Unmendable(Exception):
    """No value was found that the schema accepts."""


class Mender:
    """The compiled schemas of one contract. One per server."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self.resolve, self._schemas = document.resolve, schemas
        self._compiled: dict[bytes, Validator] = {}

    def accepts(self, schema: Json, value: Any) -> bool:
        """Whether a schema of the document accepts a value."""
        key = orjson.dumps(schema, option=orjson.OPT_NON_STR_KEYS)
        if key not in self._compiled:
            self._compiled[key] = self._schemas.compile(schema, request=True)
        return self._compiled[key].is_valid(value)


class Mending:
    """Mends the values of one request; `changes` is what it changed."""

    def __init__(self, mender: Mender, now: str, reasons: Mapping[str, str]) -> None:
        """`now` is a date-time that may be used; `reasons` are the messages of the refusal by place."""
        self._mender, self._now, self._reasons = mender, now, reasons
        self.changes: list[Change] = []

    def mend(self, schema: Json, value: Any, place: str, example: Any = ABSENT, depth: int = 0) -> Any:
        """The value, or the nearest one that the schema accepts. Raises Unmendable."""
        schema = self._chosen(self._mender.resolve(schema), value)
        if depth > _DEEPEST:
            raise Unmendable(place)
        if value is None and schema.get("nullable"):
            return None
        if schema.get("type") == "object":
            return self._object(schema, value, place, example, depth)
        if schema.get("type") == "array":
            return self._array(schema, value, place, example, depth)
        if value is not ABSENT and self._mender.accepts(schema, value):
            return value
        made = self._first_accepted(schema, value, place, example)
        self._list(place, value, made)
        return made

    def _chosen(self, schema: Json, value: Any) -> Json:
        """The schema with its `allOf` merged, or the alternative that accepts the value, else the first one."""
        resolve = self._mender.resolve
        options = schema.get("oneOf") or schema.get("anyOf")
        if options:
            fitting = (option for option in options if value is not ABSENT and self._mender.accepts(option, value))
            return resolve(next(fitting, options[0]))
        for part in schema.get("allOf", ()):
            part = self._chosen(resolve(part), value)
            members = dict(schema["properties"])
            for name, member in part.get("properties", {}).items():
                members[name] = {**resolve(members.get(name, {})), **resolve(member)}
            required = [*schema.get("required", ()), *part.get("required", ())]
            schema = {**schema, "properties": members, "required": required}
        return schema

    def _first_accepted(self, schema: Json, value: Any, place: str, example: Any) -> Any:
        made = () if value is ABSENT else like(schema, value, self._now)
        for candidates in (made, () if example is ABSENT else (example,), samples(schema, self._now)):
            for candidate in candidates:
                if self._mender.accepts(schema, candidate):
                    return candidate
        if schema.get("enum"):
            return schema["enum"][0]
        if schema.get("nullable"):
            return None
        raise Unmendable(place)

    def _object(self, schema: Json, value: Any, place: str, example: Any, depth: int) -> Any:
        if not isinstance(value, dict):
            model = example if isinstance(example, dict) else None if schema.get("nullable") else {}
            return self._replaced(schema, value, place, model, depth)
        shown = example if isinstance(example, dict) else schema.get("example")
        shown = shown if isinstance(shown, dict) else {}
        named, required = schema.get("properties", {}), schema.get("required", ())
        rest = schema.get("additionalProperties", True)
        mended: dict[str, Any] = {}

        def add(name: str, member: Any) -> None:
            below = named.get(name, rest if isinstance(rest, dict) else {})
            mended[name] = self.mend(below, member, f"{place}.{name}", shown.get(name, ABSENT), depth + 1)

        for name, member in (self._known(named, value, place) if rest is False else value).items():
            try:
                add(name, member)
            except Unmendable:
                if name in required:
                    raise
                self._list(f"{place}.{name}", member, None)
        for name in required:
            if name not in mended:
                add(name, ABSENT)
        for name in (*(n for n in shown if n in named), *named):  # members of the example first
            if len(mended) < schema.get("minProperties", 0) and name not in mended:
                add(name, ABSENT)
        for name in list(mended)[schema.get("maxProperties", len(mended)) :]:
            self._list(f"{place}.{name}", mended.pop(name), None)
        return mended

    def _known(self, named: Iterable[str], value: dict[str, Any], place: str) -> dict[str, Any]:
        """The members that the contract names; an unknown one is renamed to an absent one of a similar name."""
        kept = {name: member for name, member in value.items() if name in named}
        for name, member in value.items():
            if name in named:
                continue
            similar = nearest(name, [known for known in named if known not in kept]) if len(kept) < _MOST else None
            if similar is not None:
                kept[similar] = member
                self._list(f"{place}.{similar}", None, member)
            self._list(f"{place}.{name}", member, None, "The contract has no such field here.")
        return kept

    def _array(self, schema: Json, value: Any, place: str, example: Any, depth: int) -> Any:
        items = schema.get("items", {})
        if not isinstance(value, list):
            if value is not ABSENT and value is not None and self._mender.accepts(items, value):
                self._list(place, value, [value])
                return [value]
            model = example if isinstance(example, list) else schema.get("example", [])
            return self._replaced(schema, value, place, model, depth)
        shown = (example if isinstance(example, list) else []) or [ABSENT]
        mended: list[Any] = []
        for number, item in enumerate(value[: schema.get("maxItems", len(value))]):
            try:
                kept = self.mend(items, item, f"{place}[{number}]", shown[0], depth + 1)
            except Unmendable:
                continue
            if not schema.get("uniqueItems") or kept not in mended[:_MOST]:
                mended.append(kept)
        while (number := len(mended)) < schema.get("minItems", 0):
            mended.append(self.mend(items, ABSENT, f"{place}[{number}]", shown[number % len(shown)], depth + 1))
        if len(mended) != len(value):
            self._list(place, value, mended)
        return mended

    def _replaced(self, schema: Json, value: Any, place: str, model: Any, depth: int) -> Any:
        """A mended model in place of a value of another type, listed as one change."""
        listed, self.changes = self.changes, []
        try:
            made = None if model is None else self.mend(schema, model, place, model, depth + 1)
        finally:
            self.changes = listed
        self._list(place, value, made)
        return made

    def _list(self, place: str, given: Any, made: Any, why: str = WHY) -> None:
        if len(self.changes) < _MOST:
            given = None if given is ABSENT else given
            why = "This field is required." if given is None and why == WHY else why
            self.changes.append(Change(place, given, made, self._reasons.get(place, why)))


# -- values of one text, number or truth value that a schema accepts


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
    bounds = [schema[name] for name in ("minimum", "maximum") if name in schema]
    for candidate in () if number is None else (number, round(number, 2)):
        fit = min(max(candidate, schema.get("minimum", candidate)), schema.get("maximum", math.inf))
        yield int(fit) if schema["type"] == "integer" else fit
    yield from (*bounds, 1)


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


def _texts(schema: Json, value: Any, now: str) -> Iterator[str]:
    if isinstance(value, int | float):
        value = str(value)
    if not isinstance(value, str):
        return
    clean = _LONE.sub("", value[:_LONGEST]).replace("\0", "")
    plain, most, least = clean.strip(), schema.get("maxLength", _LONGEST), schema.get("minLength", 0)
    spelled = plain.upper(), plain.lower(), re.sub(r"[^0-9]", "", plain), re.sub(r"[^A-Za-z0-9_.-]", "", plain)
    for candidate in (clean, plain, *_formatted(schema.get("format"), plain, now), *spelled):
        if cut := candidate[:most]:
            yield cut.ljust(least, cut[-1])


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
    elif kind == "uri":
        yield re.sub(r"[\s#@]", "", "https://" + text.rpartition("://")[2])[:2_000]
    elif kind == "email":
        name, _, host = re.sub(r"[^A-Za-z0-9@.+_-]", "", text).partition("@")
        name = name.strip(".")[:60] or "marina"
        yield from (f"{name}@{host}", f"{name}@example.com")


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
