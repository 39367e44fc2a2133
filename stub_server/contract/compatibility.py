"""Checks that a contract with overlays keeps what the server's rules need of the shipped one.

An overlay may add states, sets of states and unique keys, and remove moves, events and scopes. It may not remove a
state, a set, the member that holds the state, or a unique key by which the server finds records. Answers must allow
what the server sends: values of requests, and its own, of which the examples of the shipped contract are samples.
"""

from collections.abc import Iterator

from .document import JSON, Document, Operation, target
from .formats import NO_FORMATS, READ
from .generated import COUNTS, SOURCE
from .schema import Schemas
from .source import Json, Place, error_at

SUCCESSES = (200, 201, 202, 204)
_VERBS = ("create", "createPix", "update")
_NAMED_DEFAULTS = ("Plan", "Product")  # whose requests have defaults that records begin with
_AT_MOST, _AT_LEAST = ("maxLength", "maximum", "maxItems"), ("minLength", "minimum", "minItems")
_LEAF = ("type", "format", "pattern", "enum", "nullable", *_AT_MOST, *_AT_LEAST, "multipleOf")
_WORDS = {"array": "a list", "boolean": "true or false", "integer": "a whole number", "null": "null"}


def check(document: Document, shipped: Document) -> None:
    """Raises ContractError with the JSONPath of what the server cannot do without."""
    comparison = _Comparison(document, shipped)
    comparison.check_states()
    comparison.check_unique()
    comparison.check_payloads()
    kept = [(old, new) for name, old in shipped.operations.items() if (new := document.operations.get(name))]
    for old, new in kept:
        comparison.check_answer(old, new)
    comparison.check_echoes()
    comparison.check_defaults()
    for old, new in kept:
        comparison.check_read(old, new)
        comparison.check_examples(old, new)


def success_of(operation: Operation, shipped: Operation) -> int:
    """The status of a success, also where the shipped one is another. Raises ContractError if it is unclear."""
    (old,), new = shipped.successes, operation.successes
    if old in new:
        return old
    place = [*operation.at, "responses"]
    if len(new) != 1:
        raise error_at(place, f"{operation.id}: list exactly one status below 300, or include {old}")
    if new[0] not in SUCCESSES:
        known = ", ".join(map(str, SUCCESSES))
        raise error_at([*place, str(new[0])], f"the server succeeds with one of {known}: name one of them")
    return new[0]


class _Comparison:
    """Compares a contract with the shipped one. Every check raises ContractError."""

    def __init__(self, document: Document, shipped: Document) -> None:
        self.document, self.shipped = document, shipped
        self.named: dict[str, Json] = document.raw["components"]["schemas"]
        self.schemas = Schemas(document.raw, NO_FORMATS)

    def check_states(self) -> None:
        """States, sets of states and the member that holds the state are still there."""
        for name, old in self.shipped.lifecycles.items():
            place: Place = ["components", "schemas", name, "x-lifecycle"]
            new = self.document.lifecycles.get(name)
            if new is None:
                raise error_at(place, "the server needs the states of this resource: keep its x-lifecycle")
            if new.field != old.field:
                raise error_at([*place, "field"], f"the server stores the state in {old.field}: do not change it")
            for step, had, has, what, how in (
                ("states", old.states, new.states, "state", "without moves if it never occurs"),
                ("sets", old.sets, new.sets, "set", "empty if it has no state"),
            ):
                lost = [each for each in had if each not in has]
                if lost:
                    reason = f"the rules of the server need the {what} {lost[0]}: keep it, {how}"
                    raise error_at([*place, step], reason)

    def check_unique(self) -> None:
        """Unique keys by which the server finds records are still there, and it can refuse by the new ones."""
        known = self.shipped.unique
        for name, shipped in known.items():
            keys = {key.name: key for key in self.document.unique.get(name, ())}
            for old in shipped:
                is_needed = old.code is None or (name, old.name) == ("Customer", "document")
                key = keys.get(old.name)
                if is_needed and (key is None or key._replace(code=old.code) != old):
                    reason = f"the server finds records of {name} by {old.name}: keep its unique key as it is"
                    raise error_at(["components", "schemas", name, "x-unique"], reason)
        refusing = sorted(name for name, keys in known.items() if any(key.code for key in keys))
        for name, new in self.document.unique.items():
            for number, key in enumerate(new):
                if key in known.get(name, ()):
                    continue
                place: Place = ["components", "schemas", name, "x-unique", number]
                if name not in refusing:
                    raise error_at(place, f"x-unique has no effect here, only in {', '.join(refusing)}: remove it")
                if key.code is None:
                    raise error_at(place, "this unique key has no code for its refusal: add one")
                operation = self.document.operations.get(f"create{name}")
                asked = {} if operation is None else (self.document.resolve(operation.body) or {}).get("properties", {})
                for member in (*key.members, *(() if key.scope is None else (key.scope,))):
                    schema = self.document.resolve(asked.get(member, {}))
                    if schema.get("type") != "string" or "enum" in schema:
                        raise error_at(place, f"a request to create a {name} has no text {member}: take it out")

    def check_payloads(self) -> None:
        """Payloads neither require a member that the server never sends nor forbid one that it sends."""
        sent: dict[str | None, set[str]] = {}
        envelope: set[str] = set()
        for event in self.shipped.events.values():
            body, data = _body_and_data(self.shipped, event)
            envelope |= set(body["properties"])
            sent.setdefault(event["record"], set()).update(set(data["properties"]) - {event["payload_key"]})
        for name, event in self.document.events.items():
            if event["record"] not in sent:
                continue  # no move and no change raises it: its payload is its example
            body, data = _body_and_data(self.document, event)
            place: Place = ["x-webhooks", name, "post", "requestBody", "content", JSON, "schema"]
            members = sent[event["record"]] | {event["payload_key"]}
            for schema, known, of in ((body, envelope, "the payload"), (data, members, "data")):
                asked = sorted(set(schema.get("required", ())) - known)
                if asked:
                    reason = f"the server has nothing to send as {asked[0]} of {of}: do not require it"
                    raise error_at(place, reason)
                lacking = sorted(known - set(schema.get("properties", ())))
                if lacking and schema.get("additionalProperties") is False:
                    raise error_at(place, f"the server sends {lacking[0]} in {of}: keep it in the properties")

    def check_answer(self, old: Operation, new: Operation) -> None:
        """An answer does not forbid what the server sends or require what it lacks, such as a caller."""
        if old.scheme is not None and new.scheme is None:
            raise error_at(new.at, f"{new.id} is about what the caller owns: keep a scheme in its security")
        status = success_of(new, old)
        sent, answer = old.responses[old.successes[0]], new.responses[status]
        place, raw = [*new.at, "responses", str(status)], new.raw["responses"][str(status)]
        for name, header in answer.headers.items():
            if header.get("required") and not sent.headers.get(name, {}).get("required"):
                raise error_at([*place, "headers", name], f"the server does not always send {name}: do not require it")
            if name in sent.headers:
                at = target(self.document.resolve(raw)["headers"][name], [*place, "headers", name])
                self._compare(sent.headers[name].get("schema"), header.get("schema"), [*at, "schema"], name, set())
        if status == 204:
            if answer.media:
                raise error_at([*place, "content"], "a 204 has no content: take it out")
        elif JSON in sent.media:
            if JSON not in answer.media:
                raise error_at(place, f"the server answers {JSON}: keep its content, or make the status 204")
            at = [*target(raw, place), "content", JSON, "schema"]
            self._compare(sent.media[JSON], answer.media[JSON], at, "", set())

    def _compare(self, old: Json, new: Json, place: Place, member: str, seen: set[tuple[int, int]]) -> None:
        """`new` can be what the server sends as `old`; bounds and enums are not compared, each pair only once."""
        place = target(new, place)
        old, new = self.shipped.resolve(old), self.document.resolve(new)
        if not isinstance(old, dict) or not isinstance(new, dict) or (id(old), id(new)) in seen:
            return
        seen.add((id(old), id(new)))
        lost = _types(old) - _types(new) if "type" in old and "type" in new else ()
        if lost:
            raise error_at(place, f"the server sends {_WORDS.get(min(lost), min(lost))} as {member}: allow it")
        had, has = old.get("properties", {}), new.get("properties", {})
        if COUNTS in old:  # the server counts the states that an overlay has added too
            lifecycle = self.document.lifecycles[old[COUNTS].partition(":")[2]]
            had = {state: {} for state in lifecycle.states} | had
        for name in had:
            if name in has:
                self._compare(had[name], has[name], [*place, "properties", name], name, seen)
            elif new.get("additionalProperties") is False:
                raise error_at([*place, "properties"], f"the server sends {name}: keep it in the properties")
        record = self.named.get(str(place[2]), {}) if len(place) == 3 else {}
        is_record = "x-lifecycle" in record or "x-events" in record
        for name in new.get("required", ()):
            if name not in had and not (is_record and self._has_first_value(has.get(name, {}))):
                raise error_at([*place, "required"], f"the server has nothing to send as {name}: do not require it")
        for key in ("items", "additionalProperties"):
            if isinstance(old.get(key), dict) and isinstance(new.get(key), dict):
                self._compare(old[key], new[key], [*place, key], member, seen)

    def _has_first_value(self, node: Json) -> bool:
        """Whether `Document.defaults` gives a new member of a record a value."""
        schema = self.document.resolve(node)
        return "default" in schema or bool(schema.get("nullable")) or schema.get("type") in ("object", "array")

    def check_echoes(self) -> None:
        """What a request may say of a record, its answers show."""
        for name, schema in self.named.items():
            for at, body in self._bodies(name):
                for member, asked in body.get("properties", {}).items():
                    shown = schema.get("properties", {}).get(member)
                    if shown is not None:
                        self._check_shown(asked, shown, [*at, "properties", member], name, member)
        pagination = self.named.get("Pagination", {}).get("properties", {})
        for operation in self.document.operations.values():
            for parameter in operation.parameters:
                if parameter.place == "query" and parameter.name in ("page", "limit") and parameter.name in pagination:
                    shown = pagination[parameter.name]
                    self._check_shown(parameter.schema, shown, [*parameter.at, "schema"], "Pagination", parameter.name)

    def _check_shown(self, asked: Json, shown: Json, at: Place, resource: str, member: str) -> None:
        """Answers may have every value that requests may have."""
        at = target(asked, at)
        asked, shown = self.document.resolve(asked), self.document.resolve(shown)
        for key in shown.keys() & _LEAF:
            limit, given = shown[key], asked.get(key)
            if key == "enum":
                is_allowed = bool(given) and set(given) - {None} <= set(limit)
            elif key in _AT_MOST or key in _AT_LEAST:
                is_allowed = given is not None and (given <= limit if key in _AT_MOST else given >= limit)
            else:
                is_allowed = given == limit
            if not is_allowed and key not in ("type", "nullable"):
                reason = f"a request may have a {member} that the {key} of its answer does not allow"
                raise error_at(at, f"{reason}: give both the same #/components/schemas/{resource}/properties/{member}")
        if "items" in asked and "items" in shown:
            self._check_shown(asked["items"], shown["items"], [*at, "items"], resource, member)

    def check_defaults(self) -> None:
        """A record may have what it begins with where a request says nothing; rules keep defaults that are gone."""
        for name in _NAMED_DEFAULTS:
            create = f"{name}Create"
            if name in self.named and create in self.named:
                properties = self.document.schema(name)["properties"]
                for member, value in (self.shipped.defaults(create) | self.document.defaults(create)).items():
                    place: Place = ["components", "schemas", name, "properties", member]
                    reason = f"a {name} begins with {value} as {member}: allow it, or give {create} another default"
                    if value is None or member not in properties:
                        continue
                    if not self.schemas.compile(properties[member], request=False).is_valid(value):
                        raise error_at(place, reason)

    def check_read(self, old: Operation, new: Operation) -> None:
        """What the server reads of a request has the format in which it reads it."""
        known = {(parameter.place, parameter.name): parameter.schema for parameter in old.parameters}
        pairs: list[tuple[Json, Json, Place, str]] = [
            (known[parameter.place, parameter.name], parameter.schema, [*parameter.at, "schema"], parameter.name)
            for parameter in new.parameters
            if (parameter.place, parameter.name) in known
        ]
        if old.body is not None and new.body is not None:
            pairs.append((old.body, new.body, new.body_at, "body"))
        while pairs:
            was, now, place, name = pairs.pop()
            place, was, now = target(now, place), self.shipped.resolve(was), self.document.resolve(now)
            format_ = was.get("format")
            if format_ in READ and now.get("format", format_) != format_:
                raise error_at(place, f"the server reads {name} as a {format_}: keep the format, or leave it out")
            had, has = was.get("properties", {}), now.get("properties", {})
            pairs += [(had[key], has[key], [*place, "properties", key], key) for key in had.keys() & has.keys()]
            if isinstance(was.get("items"), dict) and isinstance(now.get("items"), dict):
                pairs.append((was["items"], now["items"], [*place, "items"], name))

    def check_examples(self, old: Operation, new: Operation) -> None:
        """An answer allows the examples of the shipped one, which are what the server sends."""
        status = success_of(new, old)
        schema = new.responses[status].media.get(JSON)
        place = [*new.at, "responses", str(status), "content", JSON, "schema"]
        values = self.shipped.examples(old.raw["responses"][str(old.successes[0])])
        for value in values if schema is not None else ():
            self._check_example(schema, value, place, "it")

    def _check_example(self, schema: Json, value: Json, place: Place, member: str) -> None:
        asked: set[str] = set()
        if "$ref" in schema:
            place = target(schema, place)
            asked = {name for _, body in self._bodies(str(place[-1])) for name in body.get("properties", {})}
        schema = self.document.resolve(schema)
        if isinstance(value, dict) and "properties" in schema:
            for name, part in schema["properties"].items():
                if name in value and name not in asked:
                    self._check_example(part, value[name], [*place, "properties", name], name)
        elif isinstance(value, list) and "items" in schema:
            for item in value:
                self._check_example(schema["items"], item, [*place, "items"], member)
        elif SOURCE not in schema and value is not None:
            leaf = {key: schema[key] for key in _LEAF if key in schema}
            error = self.schemas.compile(leaf, request=False).first_error(value)
            if error is not None:
                raise error_at(place, f"the server sends other values as {member}, {error.message[:200]}: allow them")

    def _bodies(self, name: str) -> Iterator[tuple[Place, Json]]:
        """The bodies of the requests that create and update a resource, with their places."""
        for verb in _VERBS:
            operation = self.document.operations.get(f"{verb}{name}")
            if operation is not None and operation.body is not None:
                yield target(operation.body, operation.body_at), self.document.resolve(operation.body)


def _body_and_data(document: Document, event: Json) -> tuple[Json, Json]:
    body = document.resolve(event["schema"])
    return body, document.resolve(body["properties"]["data"])


def _types(schema: Json) -> set[str]:
    types = {schema["type"]} | ({"null"} if schema.get("nullable") else set())
    return types | {"integer"} if "number" in types else types
