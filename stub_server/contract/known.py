"""Checks that a contract with overlays keeps the parts of the shipped one that the server's rules need."""

from typing import NamedTuple

from ..kernel.record import UniqueKey
from .document import JSON, Document, Operation
from .names import COUNTS
from .source import ContractError, Json, json_path

Place = list[str | int]
SUCCESSES = (200, 201, 202, 204)


def check_states(document: Document, shipped: Document) -> None:
    """Raises ContractError if a state, a set of states or the member that holds the state is missing."""
    for name, old in shipped.lifecycles.items():
        place: list[str | int] = ["components", "schemas", name, "x-lifecycle"]
        new = document.lifecycles.get(name)
        if new is None:
            raise _fault(place, "the server needs the states of this resource: keep its x-lifecycle")
        if new.field != old.field:
            raise _fault([*place, "field"], f"the server stores the state in {old.field}: do not change it")
        for state in old.states:
            if state not in new.states:
                reason = f"the rules of the server need the state {state}: keep it, without moves if it never occurs"
                raise _fault([*place, "states"], reason)
        for key in old.sets:
            if key not in new.sets:
                reason = f"the rules of the server need the set {key}: keep it, empty if it has no state"
                raise _fault([*place, "sets"], reason)


def check_unique(document: Document, shipped: Document) -> None:
    """Raises ContractError for a unique key that the server needs and lacks, or cannot refuse a second record by."""
    refusing = {name for name, keys in shipped.unique.items() if any(key.code for key in keys)}
    for name, known in shipped.unique.items():
        keys = {key.name: key for key in document.unique.get(name, ())}
        for old in known:
            key = keys.get(old.name)
            if _is_needed(name, old) and (key is None or key._replace(code=old.code) != old):
                reason = f"the server finds records of {name} by {old.name}: keep its unique key as it is"
                raise _fault(["components", "schemas", name, "x-unique"], reason)
    for name, new in document.unique.items():
        for number, key in enumerate(new):
            place: Place = ["components", "schemas", name, "x-unique", number]
            if key in shipped.unique.get(name, ()):
                continue
            if name not in refusing:
                raise _fault(place, f"the server refuses no second {name}, only a {' or '.join(sorted(refusing))}")
            if key.code is None:
                raise _fault(place, "the server refuses a second record with a code: name it")
            operation = document.operations.get(f"create{name}")
            asked = {} if operation is None else (document.resolve(operation.body) or {}).get("properties", {})
            for member in (*key.members, *(() if key.scope is None else (key.scope,))):
                schema = document.resolve(asked.get(member, {}))
                if schema.get("type") != "string" or "enum" in schema:
                    raise _fault(place, f"a request to create a {name} has no text {member}: take it out")


def _is_needed(name: str, key: UniqueKey) -> bool:
    return key.code is None or (name, key.name) == ("Customer", "document")


def check_payloads(document: Document, shipped: Document) -> None:
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
        raise _fault(place, f"{operation.id} succeeds in one way: name one status below 300, or {old}")
    if new[0] not in SUCCESSES:
        told = ", ".join(map(str, SUCCESSES))
        raise _fault([*place, str(new[0])], f"the server succeeds with one of {told}: name one of them")
    return new[0]


def check_answers(document: Document, shipped: Document) -> None:
    """Raises ContractError if an answer forbids what the server sends or requires what it lacks, such as a caller."""
    for ident, old in shipped.operations.items():
        new = document.operations.get(ident)
        if new is None:
            continue
        if old.scheme is not None and new.scheme is None:
            operation: Place = ["paths", new.path, new.method.lower()]
            raise _fault(operation, f"{ident} is about what the caller owns: keep a scheme in its security")
        status = success_of(new, old)
        place: Place = ["paths", new.path, new.method.lower(), "responses", str(status)]
        told, answer = old.responses[old.successes[0]], new.responses[status]
        for name, header in answer.headers.items():
            if header.get("required") and not told.headers.get(name, {}).get("required"):
                raise _fault([*place, "headers", name], f"the server does not always send {name}: do not require it")
            if name in told.headers:
                raw = document.resolve(new.raw["responses"][str(status)])["headers"][name]
                below: Place = raw["$ref"][2:].split("/") if "$ref" in raw else [*place, "headers", name]
                answers = _Answers(document, shipped, set())
                answers.compare(told.headers[name].get("schema"), header.get("schema"), [*below, "schema"], name)
        if status == 204:
            if answer.media:
                raise _fault([*place, "content"], "a 204 has no content: take it out")
        elif JSON in told.media:
            if JSON not in answer.media:
                raise _fault(place, f"the server answers {JSON}: keep its content, or make the status 204")
            raw = new.raw["responses"][str(status)]
            at: Place = raw["$ref"][2:].split("/") if "$ref" in raw else place
            _Answers(document, shipped, set()).compare(
                told.media[JSON], answer.media[JSON], [*at, "content", JSON, "schema"], ""
            )


class _Answers(NamedTuple):
    """Compares schemas of answers, each pair of them once."""

    document: Document
    shipped: Document
    seen: set[tuple[int, int]]

    def compare(self, old: Json, new: Json, place: Place, member: str) -> None:
        """Raises ContractError if `new` cannot be what the server sends as `old`; bounds and enums are not compared."""
        if isinstance(new, dict) and "$ref" in new:
            place = new["$ref"][2:].split("/")
        record = len(place) == 3 and self._is_record(str(place[2]))
        old, new = self.shipped.resolve(old), self.document.resolve(new)
        if not isinstance(old, dict) or not isinstance(new, dict) or (id(old), id(new)) in self.seen:
            return
        self.seen.add((id(old), id(new)))
        lost = _types(old) - _types(new) if "type" in old and "type" in new else ()
        if lost:
            raise _fault(place, f"the server sends {_WORDS.get(min(lost), min(lost))} as {member}: allow it")
        had, has = old.get("properties", {}), new.get("properties", {})
        if COUNTS in old:  # the server counts the states that an overlay has added too
            lifecycle = self.document.lifecycles[old[COUNTS].partition(":")[2]]
            had = {state: {} for state in lifecycle.states} | had
        for name in had:
            if name in has:
                self.compare(had[name], has[name], [*place, "properties", name], name)
            elif new.get("additionalProperties") is False:
                raise _fault([*place, "properties"], f"the server sends {name}: keep it in the properties")
        for name in new.get("required", ()):
            if name not in had and not (record and _begins_as_something(self.document.resolve(has.get(name)))):
                raise _fault([*place, "required"], f"the server has nothing to send as {name}: do not require it")
        for key in ("items", "additionalProperties"):
            if isinstance(old.get(key), dict) and isinstance(new.get(key), dict):
                self.compare(old[key], new[key], [*place, key], member)

    def _is_record(self, name: str) -> bool:
        schema = self.document.raw["components"]["schemas"].get(name, {})
        return "x-lifecycle" in schema or "x-events" in schema


_WORDS = {"array": "a list", "boolean": "true or false", "integer": "a whole number", "null": "null"}


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
    return _fault(["x-webhooks", event, "post", "requestBody", "content", "application/json", "schema"], reason)


def _fault(place: list[str | int], reason: str) -> ContractError:
    return ContractError(f"{json_path(place)}: {reason}")
