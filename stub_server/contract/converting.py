"""Fills in what data of another contract lacks, and lists what does not fit the served one."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from ..core.record import has_more_values
from .document import Document
from .schema import Schemas, Validator
from .source import Json, JsonObject, escaped

# faults of one value, and values of what is searched for them
MOST_FAULTS, MOST_SEARCHED = 20, 2_000


class Fault(NamedTuple):
    """Why a value does not fit. In the JSON pointer `*` stands for any place in a list."""

    pointer: str
    reason: str


class Converter:
    """Holds JSON to the schemas of one contract."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self.document, self.schemas = document, schemas
        self._validators: dict[int, Validator] = {}

    def fits(self, schema: Json, value: Json) -> bool:
        """Whether a value keeps a schema."""
        return self._validator(schema).is_valid(value)

    def _validator(self, schema: Json) -> Validator:
        if id(schema) not in self._validators:  # the document lives as long as this
            self._validators[id(schema)] = self.schemas.compile(schema, request=False)
        return self._validators[id(schema)]

    def filled(self, schema: Json, value: Json) -> Json:
        """The value, with its default or null for each required member that it lacks and that may
        have one.
        """
        schema = self.document.resolve(schema)
        for part in schema.get("allOf", ()):
            value = self.filled(part, value)
        if isinstance(value, list) and "items" in schema:
            return [self.filled(schema["items"], item) for item in value]
        if isinstance(value, dict):
            return value | dict(self._members(schema, value))
        return value

    def _members(self, schema: Json, value: JsonObject) -> Iterator[tuple[str, Json]]:
        """The members of an object that the schema describes, with new ones."""
        for name, member in schema.get("properties", {}).items():
            if name in value:
                yield name, self.filled(member, value[name])
            elif name in schema.get("required", ()):
                default = self.document.resolve(member).get("default")
                if self.fits(member, default):
                    yield name, default

    def faults(self, schema: Json, value: Json) -> list[Fault]:
        """Why a value does not fit; of a very wide one only that it does not."""
        # all faults are found before the first is returned
        if has_more_values(value, MOST_SEARCHED):
            return [Fault("", f"it does not fit, and has more than {MOST_SEARCHED:,} values")]
        errors = islice(self._validator(schema).iter_errors(value), MOST_FAULTS)
        return [*chain.from_iterable(map(_faults, errors))]


def _faults(error: Any) -> Iterator[Fault]:
    kind, steps = error.kind.name, list(error.instance_path)
    if kind == "required":
        yield Fault(_pointer([*steps, error.kind.property]), "required and has no default")
    elif kind == "additionalProperties":
        for name in error.kind.unexpected[:MOST_FAULTS]:
            yield Fault(_pointer([*steps, name]), "the contract has no such member")
    else:
        yield Fault(_pointer(steps), error.message[:200])


def _pointer(steps: Sequence[str | int]) -> str:
    text = ""
    for step in steps:
        text += "/*" if isinstance(step, int) else f"/{escaped(step)}"
    return text[:200]
