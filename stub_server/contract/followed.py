"""Checks that answers which overlays have changed allow what the server sends: its own values, and those of requests.

Of its own values the examples of the shipped contract are samples.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from .document import JSON, Document, Operation
from .formats import NO_FORMATS, READ
from .known import success_of
from .names import SOURCE
from .schema import Schemas
from .source import ContractError, Json, json_path

Place = list[str | int]

_VERBS = ("create", "createPix", "update")
_NAMED_DEFAULTS = ("Plan", "Product")  # whose requests have defaults that records begin with
_AT_MOST = {"maxLength": "longer", "maximum": "larger", "maxItems": "longer"}
_AT_LEAST = {"minLength": "shorter", "minimum": "smaller", "minItems": "shorter"}
_LEAF = ("type", "format", "pattern", "enum", "nullable", *_AT_MOST, *_AT_LEAST, "multipleOf")


def check(document: Document, shipped: Document) -> None:
    """Raises ContractError with the JSONPath of what an answer does not allow, or of the request that leads to it."""
    _check_echoes(document)
    _check_defaults(document, shipped)
    samples = _Samples(document, Schemas(document.raw, NO_FORMATS))
    for ident, old in shipped.operations.items():
        new = document.operations.get(ident)
        if new is None:
            continue
        _check_read(document, shipped, new, old)
        status = success_of(new, old)
        schema = new.responses[status].media.get(JSON)
        for value in () if schema is None else _examples(shipped, old):
            place: Place = ["paths", new.path, new.method.lower(), "responses", str(status), "content", JSON, "schema"]
            samples.check(schema, value, place)


def _examples(document: Document, operation: Operation) -> Iterator[Json]:
    (status,) = operation.successes
    response = document.resolve(operation.raw["responses"][str(status)])
    media = response.get("content", {}).get(JSON, {})
    if "example" in media:
        yield media["example"]
    for example in media.get("examples", {}).values():
        yield document.resolve(example).get("value")


class _Samples(NamedTuple):
    """Checks values that the server sends, member by member, against the schemas of the answers."""

    document: Document
    schemas: Schemas

    def check(self, schema: Json, value: Any, place: Place, member: str = "it") -> None:
        asked: set[str] = set()
        if "$ref" in schema:
            place = _at(schema, place)
            asked = {name for _, body in _bodies(self.document, str(place[-1])) for name in body.get("properties", {})}
        schema = self.document.resolve(schema)
        if isinstance(value, dict) and "properties" in schema:
            for name, part in schema["properties"].items():
                if name in value and name not in asked:
                    self.check(part, value[name], [*place, "properties", name], name)
        elif isinstance(value, list) and "items" in schema:
            for item in value:
                self.check(schema["items"], item, [*place, "items"], member)
        elif SOURCE not in schema and value is not None:
            leaf = {key: schema[key] for key in _LEAF if key in schema}
            error = self.schemas.compile(leaf, request=False).first_error(value)
            if error is not None:
                raise _fault(place, f"the server sends other values as {member}, {error.message[:200]}: allow them")


def _check_echoes(document: Document) -> None:
    """What a request may say of a record, its answers show."""
    for name, schema in document.raw["components"]["schemas"].items():
        for at, body in _bodies(document, name):
            for member, asked in body.get("properties", {}).items():
                shown = schema.get("properties", {}).get(member)
                if shown is not None:
                    _compare(document, asked, shown, [*at, "properties", member], name, member)
    pagination = document.raw["components"]["schemas"].get("Pagination", {}).get("properties", {})
    for operation in document.operations.values():
        for number, parameter in enumerate(operation.parameters):
            if parameter.place == "query" and parameter.name in ("page", "limit") and parameter.name in pagination:
                raw = operation.raw["parameters"][number]
                at = _at(raw, ["paths", operation.path, operation.method.lower(), "parameters", number])
                shown = pagination[parameter.name]
                _compare(document, parameter.schema, shown, [*at, "schema"], "Pagination", parameter.name)


def _check_read(document: Document, shipped: Document, new: Operation, old: Operation) -> None:
    """What the server reads of a request has the format in which it reads it."""
    at: Place = ["paths", new.path, new.method.lower()]
    known = {(parameter.place, parameter.name): parameter.schema for parameter in old.parameters}
    pairs: list[tuple[Json, Json, Place, str]] = []
    for number, parameter in enumerate(new.parameters):
        if (parameter.place, parameter.name) in known:
            place = _at(new.raw["parameters"][number], [*at, "parameters", number])
            pairs.append((known[parameter.place, parameter.name], parameter.schema, [*place, "schema"], parameter.name))
    if old.body is not None and new.body is not None:
        pairs.append((old.body, new.body, [*at, "requestBody", "content", JSON, "schema"], "body"))
    while pairs:
        was, now, place, name = pairs.pop()
        place, was, now = _at(now, place), shipped.resolve(was), document.resolve(now)
        format_ = was.get("format")
        if format_ in READ and now.get("format", format_) != format_:
            raise _fault(place, f"the server reads {name} as a {format_}: keep the format, or leave it out")
        for member in was.get("properties", {}).keys() & now.get("properties", {}).keys():
            pairs.append((was["properties"][member], now["properties"][member], [*place, "properties", member], member))
        if isinstance(was.get("items"), dict) and isinstance(now.get("items"), dict):
            pairs.append((was["items"], now["items"], [*place, "items"], name))


def _bodies(document: Document, name: str) -> Iterator[tuple[Place, Json]]:
    """The bodies of the requests that create and update a resource, with their places."""
    for verb in _VERBS:
        operation = document.operations.get(f"{verb}{name}")
        if operation is not None and operation.body is not None:
            at: Place = ["paths", operation.path, operation.method.lower(), "requestBody", "content", JSON, "schema"]
            yield _at(operation.body, at), document.resolve(operation.body)


def _compare(document: Document, asked: Json, shown: Json, at: Place, resource: str, member: str) -> None:
    """Raises ContractError if a value that requests may have is none that answers may have."""
    asked, shown = document.resolve(asked), document.resolve(shown)
    for key, more in (_AT_MOST | _AT_LEAST).items():
        bound, given = shown.get(key), asked.get(key)
        if bound is not None and (given is None or (given > bound if key in _AT_MOST else given < bound)):
            raise _unlike(at, resource, member, f"a request may have a {more} {member} than its answer shows")
    for key in ("pattern", "format", "multipleOf"):
        if key in shown and shown[key] != asked.get(key):
            raise _unlike(at, resource, member, f"a request may have a {member} without the {key} of its answer")
    values = [value for value in asked.get("enum", ()) if value is not None]
    lacking = [value for value in values if value not in shown.get("enum", values)]
    if lacking or ("enum" in shown and not values):
        what = lacking[0] if lacking else "any text"
        raise _unlike(at, resource, member, f"a request may have {what} as {member}, and its answer may not")
    if "items" in asked and "items" in shown:
        _compare(document, asked["items"], shown["items"], [*_at(asked, at), "items"], resource, member)


def _unlike(at: Place, resource: str, member: str, reason: str) -> ContractError:
    return _fault(at, f"{reason}: give both the same #/components/schemas/{resource}/properties/{member}")


def _check_defaults(document: Document, shipped: Document) -> None:
    """What a record begins with where a request says nothing is allowed in it; rules keep defaults that are gone."""
    schemas = Schemas(document.raw, NO_FORMATS)
    for name in _NAMED_DEFAULTS:
        known = document.raw["components"]["schemas"]
        if name not in known or f"{name}Create" not in known:
            continue
        properties = document.schema(name)["properties"]
        begins = shipped.defaults(f"{name}Create") | document.defaults(f"{name}Create")
        for member, value in begins.items():
            if value is not None and member in properties:
                error = schemas.compile(properties[member], request=False).first_error(value)
                if error is not None:
                    place: Place = ["components", "schemas", name, "properties", member]
                    reason = f"a {name} begins with {value} as {member}: allow it, or give {name}Create another default"
                    raise _fault(place, reason)


def _at(node: Json, place: Place) -> Place:
    """The place of what a node refers to; its own if it refers to nothing."""
    return node["$ref"][2:].split("/") if "$ref" in node else place


def _fault(place: Place, reason: str) -> ContractError:
    return ContractError(f"{json_path(place)}: {reason}")
