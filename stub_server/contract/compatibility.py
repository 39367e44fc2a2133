"""Checks that a contract with overlays keeps what the server's rules need of the shipped one.

An overlay may add states, sets of states and unique keys, and remove moves, events and scopes. It may not remove a
state, a set, the member that holds the state, or a unique key by which the server finds records. Answers must allow
what the server sends: values of requests, and its own, of which the examples of the shipped contract are samples.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..kernel.record import UniqueKey
from .bundle import naming
from .document import JSON, Document, Operation
from .formats import NO_FORMATS, READ
from .generated import COUNTS, SOURCE
from .schema import Schemas
from .source import ContractError, Json, Place, error_at, unescaped

SUCCESSES = (200, 201, 202, 204)
_VERBS = ("create", "createPix", "update")
_NAMED_DEFAULTS = ("Plan", "Product")  # whose requests have defaults that records begin with
_AT_MOST = {"maxLength": "longer", "maximum": "larger", "maxItems": "longer"}
_AT_LEAST = {"minLength": "shorter", "minimum": "smaller", "minItems": "shorter"}
_LEAF = ("type", "format", "pattern", "enum", "nullable", *_AT_MOST, *_AT_LEAST, "multipleOf")
_WORDS = {"array": "a list", "boolean": "true or false", "integer": "a whole number", "null": "null"}


def check(document: Document, shipped: Document, overlays: Sequence[Path] = ()) -> None:
    """Raises ContractError with the files of `overlays` and the JSONPath of what the server cannot do without."""
    with naming(overlays, shipped.raw):
        _check_states(document, shipped)
        _check_unique(document, shipped)
        _check_payloads(document, shipped)
        kept = [(new, old) for name, old in shipped.operations.items() if (new := document.operations.get(name))]
        for new, old in kept:
            _check_answer(document, shipped, new, old)
        _check_echoes(document)
        _check_defaults(document, shipped)
        schemas = Schemas(document.raw, NO_FORMATS)
        for new, old in kept:
            _check_read(document, shipped, new, old)
            _check_samples(document, shipped, schemas, new, old)


def _check_states(document: Document, shipped: Document) -> None:
    """Raises ContractError if a state, a set of states or the member that holds the state is missing."""
    for name, old in shipped.lifecycles.items():
        place: Place = ["components", "schemas", name, "x-lifecycle"]
        new = document.lifecycles.get(name)
        if new is None:
            raise error_at(place, "the server needs the states of this resource: keep its x-lifecycle")
        if new.field != old.field:
            raise error_at([*place, "field"], f"the server stores the state in {old.field}: do not change it")
        for state in old.states:
            if state not in new.states:
                reason = f"the rules of the server need the state {state}: keep it, without moves if it never occurs"
                raise error_at([*place, "states"], reason)
        for key in old.sets:
            if key not in new.sets:
                reason = f"the rules of the server need the set {key}: keep it, empty if it has no state"
                raise error_at([*place, "sets"], reason)


def _check_unique(document: Document, shipped: Document) -> None:
    """Raises ContractError for a unique key that the server needs and lacks, or cannot refuse a second record by."""
    refusing = {name for name, keys in shipped.unique.items() if any(key.code for key in keys)}
    for name, known in shipped.unique.items():
        keys = {key.name: key for key in document.unique.get(name, ())}
        for old in known:
            key = keys.get(old.name)
            if _is_needed(name, old) and (key is None or key._replace(code=old.code) != old):
                reason = f"the server finds records of {name} by {old.name}: keep its unique key as it is"
                raise error_at(["components", "schemas", name, "x-unique"], reason)
    for name, new in document.unique.items():
        for number, key in enumerate(new):
            place: Place = ["components", "schemas", name, "x-unique", number]
            if key in shipped.unique.get(name, ()):
                continue
            if name not in refusing:
                raise error_at(place, f"the server refuses no second {name}, only a {' or '.join(sorted(refusing))}")
            if key.code is None:
                raise error_at(place, "the server refuses a second record with a code: name it")
            operation = document.operations.get(f"create{name}")
            asked = {} if operation is None else (document.resolve(operation.body) or {}).get("properties", {})
            for member in (*key.members, *(() if key.scope is None else (key.scope,))):
                schema = document.resolve(asked.get(member, {}))
                if schema.get("type") != "string" or "enum" in schema:
                    raise error_at(place, f"a request to create a {name} has no text {member}: take it out")


def _is_needed(name: str, key: UniqueKey) -> bool:
    return key.code is None or (name, key.name) == ("Customer", "document")


def _check_payloads(document: Document, shipped: Document) -> None:
    """Raises ContractError if a payload requires a member that the server never sends or forbids one that it sends."""
    sent: dict[str | None, set[str]] = {}
    envelope: set[str] = set()
    for event in shipped.events.values():
        body, data = _parts(shipped, event)
        envelope |= set(body["properties"])
        sent.setdefault(event["record"], set()).update(set(data["properties"]) - {event["payload_key"]})
    for name, event in document.events.items():
        if event["record"] not in sent:
            continue  # no move and no change raises it: its payload is its example
        body, data = _parts(document, event)
        members = sent[event["record"]] | {event["payload_key"]}
        for schema, known, of in ((body, envelope, "the payload"), (data, members, "data")):
            asked = sorted(set(schema.get("required", ())) - known)
            if asked:
                raise _misfit(name, f"the server has nothing to send as {asked[0]} of {of}: do not require it")
            lacking = sorted(known - set(schema.get("properties", ())))
            if lacking and schema.get("additionalProperties") is False:
                raise _misfit(name, f"the server sends {lacking[0]} in {of}: keep it in the properties")


def success_of(operation: Operation, shipped: Operation) -> int:
    """The status of a success where the shipped contract has another one. Raises ContractError where none is meant."""
    (old,), new = shipped.successes, operation.successes
    if old in new:
        return old
    place: Place = ["paths", operation.path, operation.method.lower(), "responses"]
    if len(new) != 1:
        raise error_at(place, f"{operation.id} succeeds in one way: name one status below 300, or {old}")
    if new[0] not in SUCCESSES:
        told = ", ".join(map(str, SUCCESSES))
        raise error_at([*place, str(new[0])], f"the server succeeds with one of {told}: name one of them")
    return new[0]


def _check_answer(document: Document, shipped: Document, new: Operation, old: Operation) -> None:
    """Raises ContractError if an answer forbids what the server sends or requires what it lacks, such as a caller."""
    at: Place = ["paths", new.path, new.method.lower()]
    if old.scheme is not None and new.scheme is None:
        raise error_at(at, f"{new.id} is about what the caller owns: keep a scheme in its security")
    status = success_of(new, old)
    sent, answer = old.responses[old.successes[0]], new.responses[status]
    raw = new.raw["responses"][str(status)]
    place = [*at, "responses", str(status)]
    for name, header in answer.headers.items():
        if header.get("required") and not sent.headers.get(name, {}).get("required"):
            raise error_at([*place, "headers", name], f"the server does not always send {name}: do not require it")
        if name in sent.headers:
            below = _at(document.resolve(raw)["headers"][name], [*place, "headers", name])
            answers = _Answers(document, shipped, set())
            answers.compare(sent.headers[name].get("schema"), header.get("schema"), [*below, "schema"], name)
    if status == 204:
        if answer.media:
            raise error_at([*place, "content"], "a 204 has no content: take it out")
    elif JSON in sent.media:
        if JSON not in answer.media:
            raise error_at(place, f"the server answers {JSON}: keep its content, or make the status 204")
        below = [*_at(raw, place), "content", JSON, "schema"]
        _Answers(document, shipped, set()).compare(sent.media[JSON], answer.media[JSON], below, "")


class _Answers(NamedTuple):
    """Compares schemas of answers, each pair of them once."""

    document: Document
    shipped: Document
    seen: set[tuple[int, int]]

    def compare(self, old: Json, new: Json, place: Place, member: str) -> None:
        """Raises ContractError if `new` cannot be what the server sends as `old`; bounds and enums are not compared."""
        place = _at(new, place)
        record = len(place) == 3 and self._is_record(str(place[2]))
        old, new = self.shipped.resolve(old), self.document.resolve(new)
        if not isinstance(old, dict) or not isinstance(new, dict) or (id(old), id(new)) in self.seen:
            return
        self.seen.add((id(old), id(new)))
        lost = _types(old) - _types(new) if "type" in old and "type" in new else ()
        if lost:
            raise error_at(place, f"the server sends {_WORDS.get(min(lost), min(lost))} as {member}: allow it")
        had, has = old.get("properties", {}), new.get("properties", {})
        if COUNTS in old:  # the server counts the states that an overlay has added too
            lifecycle = self.document.lifecycles[old[COUNTS].partition(":")[2]]
            had = {state: {} for state in lifecycle.states} | had
        for name in had:
            if name in has:
                self.compare(had[name], has[name], [*place, "properties", name], name)
            elif new.get("additionalProperties") is False:
                raise error_at([*place, "properties"], f"the server sends {name}: keep it in the properties")
        for name in new.get("required", ()):
            if name not in had and not (record and _begins_as_something(self.document.resolve(has.get(name)))):
                raise error_at([*place, "required"], f"the server has nothing to send as {name}: do not require it")
        for key in ("items", "additionalProperties"):
            if isinstance(old.get(key), dict) and isinstance(new.get(key), dict):
                self.compare(old[key], new[key], [*place, key], member)

    def _is_record(self, name: str) -> bool:
        schema = self.document.raw["components"]["schemas"].get(name, {})
        return "x-lifecycle" in schema or "x-events" in schema


def _types(schema: Json) -> set[str]:
    types = {schema["type"]} | ({"null"} if schema.get("nullable") else set())
    return types | {"integer"} if "number" in types else types


def _begins_as_something(schema: Json) -> bool:
    """Whether a new member of a record has a first value: `Document.defaults` gives it one."""
    schema = schema or {}
    return "default" in schema or bool(schema.get("nullable")) or schema.get("type") in ("object", "array")


def _parts(document: Document, event: Json) -> tuple[Json, Json]:
    body = document.resolve(event["schema"])
    return body, document.resolve(body["properties"]["data"])


def _misfit(event: str, reason: str) -> ContractError:
    return error_at(["x-webhooks", event, "post", "requestBody", "content", "application/json", "schema"], reason)


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
            raise error_at(place, f"the server reads {name} as a {format_}: keep the format, or leave it out")
        for member in was.get("properties", {}).keys() & now.get("properties", {}).keys():
            pairs.append((was["properties"][member], now["properties"][member], [*place, "properties", member], member))
        if isinstance(was.get("items"), dict) and isinstance(now.get("items"), dict):
            pairs.append((was["items"], now["items"], [*place, "items"], name))


def _check_samples(document: Document, shipped: Document, schemas: Schemas, new: Operation, old: Operation) -> None:
    """The answer allows the examples of the shipped one."""
    status = success_of(new, old)
    schema = new.responses[status].media.get(JSON)
    place: Place = ["paths", new.path, new.method.lower(), "responses", str(status), "content", JSON, "schema"]
    media = shipped.resolve(old.raw["responses"][str(old.successes[0])]).get("content", {}).get(JSON, {})
    values = [media["example"]] if "example" in media else []
    values += [shipped.resolve(example).get("value") for example in media.get("examples", {}).values()]
    for value in values if schema is not None else ():
        _check_sample(document, schemas, schema, value, place)


def _check_sample(
    document: Document, schemas: Schemas, schema: Json, value: Any, place: Place, member: str = "it"
) -> None:
    """Check a value that the server sends, member by member."""
    asked: set[str] = set()
    if "$ref" in schema:
        place = _at(schema, place)
        asked = {name for _, body in _bodies(document, str(place[-1])) for name in body.get("properties", {})}
    schema = document.resolve(schema)
    if isinstance(value, dict) and "properties" in schema:
        for name, part in schema["properties"].items():
            if name in value and name not in asked:
                _check_sample(document, schemas, part, value[name], [*place, "properties", name], name)
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            _check_sample(document, schemas, schema["items"], item, [*place, "items"], member)
    elif SOURCE not in schema and value is not None:
        leaf = {key: schema[key] for key in _LEAF if key in schema}
        error = schemas.compile(leaf, request=False).first_error(value)
        if error is not None:
            raise error_at(place, f"the server sends other values as {member}, {error.message[:200]}: allow them")


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
    return error_at(at, f"{reason}: give both the same #/components/schemas/{resource}/properties/{member}")


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
                    raise error_at(place, reason)


def _at(node: Json, place: Place) -> Place:
    """The place of what a node refers to; its own if it refers to nothing."""
    return [*unescaped(node["$ref"])] if isinstance(node, dict) and "$ref" in node else place
