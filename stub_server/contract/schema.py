"""Compiles the contract's schemas to validators of jsonschema-rs, each when it is first needed."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import jsonschema_rs

from ..core.record import has_more_values
from .formats import STRICT, UUID, Format, Formats
from .source import Json, JsonObject, nodes, unescaped

LONGEST_KEY = 64  # characters
# values of what an error is explained of: that copies them all, and blocks every request
MOST_EXPLAINED = 20_000
MOST_STEPS_BACK = 10_000  # of a pattern in a text
_NOT_IN_DRAFT4 = ("example", "examples", "default", "description", "nullable")
_DRAFT4 = "http://json-schema.org/draft-04/schema#"


class ContractViolation(Exception):
    """A record or response of the server breaks the contract: a defect of the server,
    never of the request.
    """


def translate(node: Json, named: JsonObject) -> Json:
    """Translate an OpenAPI 3.0 schema to JSON Schema draft 4; `named` are the schemas that
    references lead to.

    `nullable` becomes a type; `format: uuid` a pattern, which is faster than a function; a pattern
    and a `not` beside a stricter format are removed, so that one fault gives one error.
    """
    if isinstance(node, list):
        return [translate(value, named) for value in node]
    if not isinstance(node, dict):
        return node
    node = _enum_or_null(node, named)
    result = {}
    for key, value in node.items():
        if key == "enum":
            result[key] = value
        elif key == "properties":
            result[key] = {name: translate(s, named) for name, s in value.items()}
        elif not key.startswith("x-") and key not in _NOT_IN_DRAFT4:
            result[key] = translate(value, named)
    return _settled(result, is_nullable=node.get("nullable") is True)


def _settled(schema: JsonObject, *, is_nullable: bool) -> JsonObject:
    """A translated schema with null among its types, and without what its format says as well."""
    if is_nullable and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
        if None not in schema.get("enum", [None]):
            schema["enum"] = [*schema["enum"], None]
    if schema.get("format") == "uuid" and "pattern" not in schema:
        del schema["format"]
        schema["pattern"] = UUID
    if schema.get("format") in STRICT:
        schema.pop("pattern", None)
        schema.pop("not", None)
    return schema


def _enum_or_null(node: JsonObject, named: JsonObject) -> JsonObject:
    """A choice between an enum and null as one enum, so that one fault gives one error, with the
    allowed values.

    The contract says it as a choice because generators of clients make three types of an enum that
    holds null.
    """
    match node:
        case {"oneOf": [first, {"enum": [None]}], **others}:
            if "$ref" in first:
                first = named.get(str(first["$ref"]).rpartition("/")[2], first)
            if "enum" in first and "type" in first:
                return {**others, "type": first["type"], "enum": first["enum"], "nullable": True}
    return node


class Schemas:
    """The schemas of one document, ready to compile."""

    def __init__(self, document: Json, formats: Formats) -> None:
        self._raw, self._formats = document.get("components", {}).get("schemas", {}), formats
        self._components: dict[tuple[str, bool], Validator] = {}

    @cached_property
    def _translated(self) -> JsonObject:
        return {name: translate(schema, self._raw) for name, schema in self._raw.items()}

    def compile(self, schema: Json, *, request: bool) -> "Validator":
        """A validator for a schema of the document."""
        root = translate(schema, self._raw)
        components = needed(root, {"schemas": self._translated})  # a validator contains only these
        formats = self._formats.requests if request else self._formats.responses
        return Validator({"$schema": _DRAFT4, "allOf": [root], "components": components}, formats)

    def component(self, name: str, *, request: bool = False) -> "Validator":
        """A validator for a named component, compiled once."""
        if (name, request) not in self._components:
            self._components[name, request] = self.compile(
                {"$ref": f"#/components/schemas/{name}"}, request=request
            )
        return self._components[name, request]


class Validator:
    """A compiled schema: `is_valid` is fast, the others say what is wrong."""

    def __init__(self, schema: Json, formats: Mapping[str, Format]) -> None:
        self._compiled = jsonschema_rs.Draft4Validator(
            schema,
            validate_formats=True,
            formats=dict(formats),
            # a pattern of an overlay may be one that takes hours: such a text does not fit
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=MOST_STEPS_BACK),
        )
        self.is_valid: Callable[[Any], bool] = self._compiled.is_valid

    def iter_errors(self, value: Any) -> Iterator[jsonschema_rs.ValidationError]:
        """All violations in a value."""
        return iter(self._compiled.iter_errors(value))

    def first_error(self, value: Any) -> jsonschema_rs.ValidationError | None:
        """The first violation in a value, found without looking for others; None if it is valid."""
        try:
            self._compiled.validate(value)
        except jsonschema_rs.ValidationError as error:
            return error
        return None

    def reason(self, value: Any) -> str:
        """Where a value breaks the schema, and how:

        `.member.0: …`. Not of a very wide one: that takes too long.
        """
        if has_more_values(value, MOST_EXPLAINED):
            return f": it does not fit, and has more than {MOST_EXPLAINED:,} values"
        error = self.first_error(value)
        assert error is not None  # it is not valid
        return described(error)


def described(error: jsonschema_rs.ValidationError) -> str:
    """Where a value breaks a schema, and how: `.member.0: …`."""
    where = "".join(f".{step}" for step in error.instance_path)
    return f"{where[:200]}: {error.message[:300]}"


def needed(node: Json, components: JsonObject) -> JsonObject:
    """The components by kind that a node refers to, with those that these refer to."""
    found: JsonObject = {}
    pending = [node]
    while pending:
        for _, inner in nodes(pending.pop()):
            reference = inner.get("$ref") if isinstance(inner, dict) else None
            match unescaped(str(reference)):
                case ["components", kind, name, *_] if name in components.get(kind, ()):
                    known = found.setdefault(kind, {})
                    if name not in known:
                        known[name] = components[kind][name]
                        pending.append(known[name])
    return found


def prune(value: Any, schema: Json, resolve: Any) -> Any:
    """The value without the members that its schema does not name (for
    `--unknown-fields ignore`).
    """
    schema = resolve(schema)
    if isinstance(value, list) and "items" in schema:
        return [prune(member, schema["items"], resolve) for member in value]
    if not isinstance(value, dict):
        return value
    named, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    allowed = {}
    for name, member in value.items():
        of = named.get(name, rest)
        if isinstance(of, dict):
            allowed[name] = prune(member, of, resolve)
        elif of:
            allowed[name] = member
    return allowed
