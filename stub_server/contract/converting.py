"""Converts data that was stored under another contract, and lists what does not fit the served one."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

import orjson

from ..kernel.record import has_more_values
from .document import JSON, Document
from .schema import MOST_EXPLAINED, Schemas, Validator, allowed_members
from .source import Json, escaped

MOST_FAULTS = 20  # of one value
MOST_SEARCHED = 2_000  # values of what is searched for more than one fault: all are found before the first is returned


class Fault(NamedTuple):
    """Why a value does not fit. In the JSON pointer `*` stands for any place in a list."""

    pointer: str
    reason: str


class Converter:
    """Converts JSON to the schemas of one contract."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self._document, self._schemas = document, schemas
        self._validators: dict[int, Validator] = {}
        self._records: dict[str, Json] = {}

    @cached_property
    def contract(self) -> dict[str, str]:
        """Which contract this is: its version, and the digest of the whole document."""
        raw = self._document.raw
        digest = sha256(orjson.dumps(raw, option=orjson.OPT_SORT_KEYS)).hexdigest()
        return {"version": str(raw["info"]["version"]), "digest": digest}

    # -- the schemas of what is stored

    def record(self, name: str) -> Json:
        return self._records.setdefault(name, {"$ref": f"#/components/schemas/{name}"})

    def resource(self, event_type: str) -> Json:
        """The schema of what an event is about; its type must be known."""
        event, resolve = self._document.events[event_type], self._document.resolve
        if event["record"] is not None:
            return self.record(event["record"])
        return resolve(resolve(event["schema"])["properties"]["data"])["properties"][event["payload_key"]]

    def answer(self, method: str, path: str, status: int) -> Json | None:
        """The schema of an answer to a request; None where the contract describes none."""
        operation = self._document.routed(path)[0].get(method)
        response = None if operation is None else operation.responses.get(status)
        return None if response is None else response.media.get(JSON)

    # -- values

    def fits(self, schema: Json, value: Json) -> bool:
        return self._validator(schema).is_valid(value)

    def _validator(self, schema: Json) -> Validator:
        if id(schema) not in self._validators:  # the document lives as long as this
            self._validators[id(schema)] = self._schemas.compile(schema, request=False)
        return self._validators[id(schema)]

    def converted(self, schema: Json, value: Json) -> Json:
        """The value as the schema has it, as far as that can be decided; the same object where it fits already.

        A required member that it lacks gets its default, else null, an empty object or list where the schema takes
        one; a member that the schema does not allow goes.
        """
        return value if self.fits(schema, value) else self._converted(schema, value)

    def _converted(self, schema: Json, value: Json) -> Json:
        parts = list(self._parts(schema))
        for part in parts:
            if isinstance(value, dict):
                value = allowed_members(value, part, lambda member, of: self._converted(of, member))
            elif isinstance(value, list) and "items" in part:
                value = [self._converted(part["items"], item) for item in value]
            for key in ("oneOf", "anyOf"):
                if key in part:
                    value = self._chosen(part[key], value)
        return self._filled(parts, value) if isinstance(value, dict) else value

    def _parts(self, schema: Json) -> Iterator[Json]:
        """A schema, and those that all of its values satisfy besides."""
        schema = self._document.resolve(schema)
        yield schema
        for part in schema.get("allOf", ()):
            yield from self._parts(part)

    def _chosen(self, branches: Sequence[Json], value: Json) -> Json:
        """The value as one of several schemas has it; if more than one fits, the one that leaves out least."""
        if any(self.fits(branch, value) for branch in branches):
            return value
        made = [self._converted(branch, value) for branch in branches]
        fitting = sorted((_lost(value, new), n) for n, new in enumerate(made) if self.fits(branches[n], new))
        is_decided = fitting and (len(fitting) == 1 or fitting[0][0] < fitting[1][0])
        return made[fitting[0][1]] if is_decided else value

    def _filled(self, parts: Sequence[Json], value: dict[str, Json]) -> dict[str, Json]:
        """An object with the members that it lacks, in the order of the contract."""
        made = {}
        for name in {name for part in parts for name in part.get("required", ())} - value.keys():
            schemas = [part["properties"][name] for part in parts if name in part.get("properties", ())]
            defaults = [found["default"] for schema in schemas for found in self._parts(schema) if "default" in found]
            for first in (*defaults, None, {}, []):
                if schemas and all(self.fits(schema, first) for schema in schemas):
                    made[name] = first
                    break
        if not made:
            return value
        order = [name for part in parts for name in part.get("properties", ())]
        value = value | made
        return {name: value[name] for name in (*order, *value) if name in value}

    def faults(self, schema: Json, value: Json) -> list[Fault]:
        """Why a value does not fit; of a very wide one only that it does not."""
        if has_more_values(value, MOST_EXPLAINED):
            return [Fault("", f"it does not fit, and has more than {MOST_EXPLAINED:,} values")]
        validator = self._validator(schema)
        is_wide = has_more_values(value, MOST_SEARCHED)
        errors = [validator.first_error(value)] if is_wide else islice(validator.iter_errors(value), MOST_FAULTS)
        return [fault for error in errors for fault in _faults(error)]


def _lost(value: Json, new: Json) -> int:
    return len(value.keys() - new.keys()) if isinstance(value, dict) else 0


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
    return "".join(f"/{'*' if isinstance(step, int) else escaped(step)}" for step in steps)[:200]
