"""Mends a value so that a schema of the contract accepts it, and tells what was changed: as little as possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..contract.document import Document
from ..contract.schema import Schemas, Validator
from ..contract.source import Json
from ..kernel.text import nearest
from .attempt import Change
from .values import like, samples

_DEEPEST = 32
_MOST = 200  # changes that are told; a body with more of them is mended all the same
ABSENT = object()
_ANYTHING: Json = {}
UNKNOWN = "The contract has no such field here."
REQUIRED = "This field is required."
_WHY = "The contract does not accept the value."


class Unmendable(Exception):
    """No value was found that the schema accepts."""


class Mender:
    """One per server: it remembers the compiled schemas."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self.resolve, self._schemas = document.resolve, schemas
        self._compiled: dict[int, Validator] = {}
        self._joined: dict[tuple[int, int], Json] = {}

    def accepts(self, schema: Json, value: Any) -> bool:
        """Whether a schema of the document accepts a value."""
        known = self._compiled.get(id(schema))  # the document lives as long as this
        if known is None:
            known = self._compiled[id(schema)] = self._schemas.compile(schema, request=True)
        return known.is_valid(value)

    def joined(self, schema: Json, part: Json) -> Json:
        """A schema of objects and one of its `allOf` as one."""
        key = id(schema), id(part)
        known = self._joined.get(key)
        if known is None:
            members = dict(schema["properties"])
            for name, member in part.get("properties", {}).items():
                members[name] = {**self.resolve(members.get(name, {})), **self.resolve(member)}
            required = [*schema.get("required", ()), *part.get("required", ())]
            known = self._joined[key] = {**schema, "properties": members, "required": required}
        return known


class Mending:
    """One value's mending: `changes` are what it took."""

    def __init__(self, mender: Mender, now: str, reasons: Mapping[str, str]) -> None:
        """`now` is a date-time that may be used; `reasons` say why by place, as the refusal told it."""
        self._mender, self._now, self._reasons = mender, now, reasons
        self.changes: list[Change] = []

    def mend(self, schema: Json, value: Any, place: str, example: Any = ABSENT, depth: int = 0) -> Any:
        """The value, or the nearest one that the schema accepts. Raises Unmendable."""
        schema = self._chosen(self._mender.resolve(schema), value)
        if depth > _DEEPEST:
            raise Unmendable(place)
        kind = schema.get("type")
        if value is None and schema.get("nullable"):
            return None
        if kind == "object":
            return self._object(schema, value, place, example, depth)
        if kind == "array":
            return self._array(schema, value, place, example, depth)
        if value is not ABSENT and self._mender.accepts(schema, value):
            return value
        return self._replace(schema, value, place, example)

    def _chosen(self, schema: Json, value: Any) -> Json:
        """Of alternatives the one that the value is meant for."""
        options = schema.get("oneOf") or schema.get("anyOf")
        if not options:
            for part in schema.get("allOf", ()):
                schema = self._mender.joined(schema, self._chosen(self._mender.resolve(part), value))
            return schema
        for option in options:
            if value is not ABSENT and self._mender.accepts(option, value):
                return self._mender.resolve(option)
        return self._mender.resolve(options[0])

    def _replace(self, schema: Json, value: Any, place: str, example: Any) -> Any:
        given = None if value is ABSENT else value
        made = () if value is ABSENT else like(schema, value, self._now)
        for candidates in (made, () if example is ABSENT else (example,), samples(schema, self._now)):
            for candidate in candidates:
                if self._mender.accepts(schema, candidate):
                    self._tell(place, given, candidate)
                    return candidate
        if schema.get("enum"):
            self._tell(place, given, schema["enum"][0])
            return schema["enum"][0]
        if schema.get("nullable"):
            self._tell(place, given, None)
            return None
        raise Unmendable(place)

    def _object(self, schema: Json, value: Any, place: str, example: Any, depth: int) -> Any:
        if not isinstance(value, dict):
            if isinstance(example, dict) or not schema.get("nullable"):
                made = self._silently(schema, example if isinstance(example, dict) else {}, place, depth)
            else:
                made = None
            self._tell(place, None if value is ABSENT else value, made)
            return made
        shown = example if isinstance(example, dict) else self._shown(schema)
        named, required = schema.get("properties", {}), schema.get("required", ())
        rest = schema.get("additionalProperties", True)
        sent = self._known(named, required, value, place) if rest is False else dict(value)
        mended: dict[str, Any] = {}
        for name, member in sent.items():
            inner = f"{place}.{name}"
            below = named.get(name, rest if isinstance(rest, dict) else _ANYTHING)
            try:
                mended[name] = self.mend(below, member, inner, shown.get(name, ABSENT), depth + 1)
            except Unmendable:
                if name in required:
                    raise
                self._tell(inner, member, None)
        for name in required:
            if name not in mended:
                inner = f"{place}.{name}"
                mended[name] = self.mend(named[name], ABSENT, inner, shown.get(name, ABSENT), depth + 1)
        self._fill(schema, named, mended, shown, place, depth)
        for name in list(mended)[schema.get("maxProperties", len(mended)) :]:
            self._tell(f"{place}.{name}", mended.pop(name), None)
        return mended

    def _known(self, named: Json, required: Iterable[str], value: dict[str, Any], place: str) -> dict[str, Any]:
        """The members that the contract names; one that is nearly a missing one is taken for it."""
        kept = {name: member for name, member in value.items() if name in named}
        for name, member in value.items():
            if name in named:
                continue
            meant = nearest(name, [known for known in named if known not in kept]) if len(kept) < _MOST else None
            if meant is not None:
                kept[meant] = member
                self._tell(f"{place}.{meant}", None, member)
            self._tell(f"{place}.{name}", member, None, UNKNOWN)
        return kept

    def _fill(self, schema: Json, named: Json, mended: dict[str, Any], shown: Any, place: str, depth: int) -> None:
        """Members for an object that needs more of them: those of the example, else what is named first."""
        for name in (*(n for n in shown if n in named), *named):
            if len(mended) >= schema.get("minProperties", 0):
                return
            if name not in mended:
                example = shown.get(name, ABSENT)
                mended[name] = self.mend(named[name], ABSENT, f"{place}.{name}", example, depth + 1)

    def _array(self, schema: Json, value: Any, place: str, example: Any, depth: int) -> Any:
        if not isinstance(value, list):
            alone = [] if value is ABSENT or value is None else [value]
            items = schema.get("items", _ANYTHING)
            fits = bool(alone) and self._mender.accepts(items, value)
            model = example if isinstance(example, list) else schema.get("example", [])
            made = alone if fits else self._silently(schema, model, place, depth)
            self._tell(place, None if value is ABSENT else value, made)
            return made
        shown = (example if isinstance(example, list) else []) or [ABSENT]
        mended = []
        for number, item in enumerate(value[: schema.get("maxItems", len(value))]):
            try:
                kept = self.mend(schema.get("items", _ANYTHING), item, f"{place}[{number}]", shown[0], depth + 1)
            except Unmendable:
                continue
            mended.append(kept)
        if schema.get("uniqueItems"):
            once: list[Any] = []
            for item in mended:
                if item not in once[:_MOST]:
                    once.append(item)
            mended = once
        while len(mended) < schema.get("minItems", 0):
            item = shown[len(mended) % len(shown)]
            mended.append(self.mend(schema.get("items", _ANYTHING), ABSENT, f"{place}[{len(mended)}]", item, depth + 1))
        if len(mended) != len(value):
            self._tell(place, value, mended)
        return mended

    def _silently(self, schema: Json, value: Any, place: str, depth: int) -> Any:
        """A value that is mended as one: what it takes is not told piece by piece."""
        told, self.changes = self.changes, []
        try:
            return self.mend(schema, value, place, value, depth + 1)
        finally:
            self.changes = told

    def _shown(self, schema: Json) -> dict[str, Any]:
        shown = schema.get("example")
        return shown if isinstance(shown, dict) else {}

    def _tell(self, place: str, given: Any, made: Any, why: str = _WHY) -> None:
        if len(self.changes) < _MOST:
            said = REQUIRED if given is None and why is _WHY else why
            self.changes.append(Change(place, given, made, self._reasons.get(place, said)))
