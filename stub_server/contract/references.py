"""Checks that every event, state, scope and member that the extension tables name is described."""

from collections.abc import Iterator

from .document import JSON, MERCHANT, Document, Lifecycle, Operation
from .formats import NO_FORMATS
from .schema import Schemas
from .source import ContractError, Json, json_path

Place = list[str | int]


def check(document: Document) -> None:
    """Raises ContractError with the JSONPath of the first name that is not described."""
    _check_operations(document)
    for lifecycle in document.lifecycles.values():
        _check_states(document, lifecycle)
        _check_moves(lifecycle)
    _check_unique(document)
    if "x-names-from" in document.raw:
        return  # the events are described in another document
    for name in document.events:
        _check_payload(document, name)
    for place, schema, event in _named_events(document):
        _check_event(document, place, schema, event)


def unraised(document: Document) -> list[str]:
    """The events of the catalogue that no move and no change raises."""
    raised = {event for lifecycle in document.lifecycles.values() for move in lifecycle.moves for event in move.events}
    raised |= {event for changes in document.changes.values() for events in changes.values() for event in events}
    return [name for name in document.events if name not in raised]


def check_answers(document: Document) -> None:
    """Check that entries of the event and scope catalogues fit the schemas of their responses. Raises ContractError."""
    known = document.raw["components"]["schemas"]
    schemas = Schemas(document.raw, NO_FORMATS)
    entries: list[tuple[str, Place, Json]] = [
        ("Scope", ["x-scopes", number], {**scope, "operations": []}) for number, scope in enumerate(document.scopes)
    ]
    for name, event in document.events.items():
        entry = {member: event[member] for member in ("description", "emitted_by", "payload_key")}
        entry |= {"type": name, "resource": name.partition(".")[0], "api_version": "v2"}
        entries.append(("WebhookEventType", ["x-webhooks", name], entry))
    compiled = {name: schemas.component(name) for name in ("Scope", "WebhookEventType") if name in known}
    for component, place, entry in entries:
        error = compiled[component].first_error(entry) if component in compiled else None
        if error is not None:
            raise _fault(place, f"cannot be listed as {component} of the contract: {error.message[:300]}")


def _check_operations(document: Document) -> None:
    scopes = {scope["name"] for scope in document.scopes}
    # With x-names-from, bundling has taken the events of the other document.
    events = None if "x-names-from" in document.raw else document.events
    for operation in document.operations.values():
        place: Place = ["paths", operation.path, operation.method.lower()]
        for scope in sorted(operation.scopes - scopes):
            raise _fault([*place, "x-scopes"], f"{scope} is no scope of this contract: {_SCOPE}")
        for number, event in enumerate(operation.emits):
            if events is not None and event not in events:
                raise _fault([*place, "x-emits", number], f"{event} is no event of this contract: {_EVENT}")


_SCOPE = "take it out, or describe it in x-scopes"
_EVENT = "take it out, or describe it in x-webhooks"
_MEMBER = "name one that it has"
_STATE = "take it out, or put it into states"


def _check_states(document: Document, lifecycle: Lifecycle) -> None:
    schema: Place = ["components", "schemas", lifecycle.resource]
    place: Place = [*schema, "x-lifecycle"]
    field = document.resolve(document.schema(lifecycle.resource).get("properties", {}).get(lifecycle.field))
    if field is None:
        raise _fault([*place, "field"], f"{lifecycle.resource} has no member {lifecycle.field}: name one that it has")
    if "enum" in field:
        different = set(lifecycle.states) ^ {str(value) for value in field["enum"] if value is not None}
        if different:
            where = "states" if min(different) in lifecycle.states else f"the enum of {lifecycle.field}"
            reason = f"{min(different)} is in {where} only: put it into both, or into neither"
            raise _fault([*place, "states"], reason)
    for name, states in lifecycle.sets.items():
        for number, state in enumerate(states):
            if state not in lifecycle.states:
                raise _fault([*place, "sets", name, number], f"{state} is no state of this lifecycle: {_STATE}")


def _check_moves(lifecycle: Lifecycle) -> None:
    place: Place = ["components", "schemas", lifecycle.resource, "x-lifecycle", "moves"]
    seen = set()
    for number, move in enumerate(lifecycle.moves):
        for end, state, other in (("from", move.from_, "new"), ("to", move.to, "deleted")):
            if state not in lifecycle.states and state != other:
                raise _fault([*place, number, end], f"{state} is no state of this lifecycle: {_STATE}")
        if move.from_ == move.to and move.name is None:
            raise _fault([*place, number], f"a move that stays in {move.to} needs a name")
        key = (move.from_, move.to, move.name)
        if key in seen:
            raise _fault([*place, number], f"the move from {move.from_} to {move.to} is defined twice: give it a name")
        seen.add(key)


def _check_unique(document: Document) -> None:
    listed = {code for operation in document.operations.values() for code in _codes_of_conflicts(operation)}
    for resource, keys in document.unique.items():
        properties = document.schema(resource).get("properties", {})
        seen = set()
        for number, key in enumerate(keys):
            place: Place = ["components", "schemas", resource, "x-unique", number]
            if key.name in seen:
                raise _fault([*place, "members"], f"{key.name} has a unique key already: take one out")
            seen.add(key.name)
            for index, member in enumerate(key.members):
                if member not in properties:
                    raise _fault([*place, "members", index], f"{resource} has no member {member}: {_MEMBER}")
                if key.ignores and document.resolve(properties[member]).get("type") != "string":
                    raise _fault([*place, "members", index], f"{member} is no string: take it out, or ignores")
            if key.scope is not None and key.scope not in properties:
                raise _fault([*place, "scope"], f"{resource} has no member {key.scope}: {_MEMBER}, or {MERCHANT}")
            if key.code is not None and key.code not in listed:
                reason = f"no operation refuses with {key.code}: list it in x-codes of the 409 of those that can"
                raise _fault([*place, "code"], reason)


def _codes_of_conflicts(operation: Operation) -> tuple[str, ...]:
    return operation.responses[409].codes if 409 in operation.responses else ()


def _check_payload(document: Document, name: str) -> None:
    """Check that a payload holds the resource under its key, allows the event as its type, and has such an example."""
    event = document.events[name]
    post: Place = ["x-webhooks", name, "post"]
    content: Place = [*post, "requestBody", "content", JSON]
    key, body = event["payload_key"], document.resolve(event["schema"])
    data = document.resolve(body.get("properties", {}).get("data")) or {}
    if key not in data.get("properties", {}):
        raise _fault([*post, "x-payload-key"], f"data of the payload has no member {key}: name one that it has")
    type_ = document.resolve(body["properties"].get("type")) or {}
    if name not in type_.get("enum", [name]):
        raise _fault([*content, "schema"], f"the type of this payload cannot be {name}: put it into the enum of type")
    example = event["example"]["data"].get(key)
    if not isinstance(example, dict) or (event["record"] and not isinstance(example.get("id"), str)):
        raise _fault([*content, "example"], f"data.{key} must be an example of the resource, with its id")


def _check_event(document: Document, place: Place, schema: str, name: str) -> None:
    if name not in document.events:
        raise _fault(place, f"{name} is no event of this contract: {_EVENT}")
    event = document.events[name]
    # A test event (webhook.test) belongs to Webhook, but its payload holds no record.
    is_test = schema == "Webhook" and event["record"] is None
    if event["record"] != schema and not is_test:
        shown = f"data.{event['payload_key']} of its payload is no {schema}"
        reason = f"{name} is of another resource: {shown}. Refer to {schema} there, or name another event"
        raise _fault(place, reason)


def _named_events(document: Document) -> Iterator[tuple[Place, str, str]]:
    """(place, schema, event) of every event that a move or a change names."""
    for name, schema in document.raw["components"]["schemas"].items():
        place: Place = ["components", "schemas", name]
        for number, move in enumerate(schema.get("x-lifecycle", {}).get("moves", ())):
            at: Place = [*place, "x-lifecycle", "moves", number]
            if move.get("event"):
                yield [*at, "event"], name, move["event"]
            for index, event in enumerate(move.get("also", ())):
                yield [*at, "also", index], name, event
        for change, events in schema.get("x-events", {}).items():
            at = [*place, "x-events", change]
            if isinstance(events, str):
                yield at, name, events
            else:
                yield from (([*at, index], name, event) for index, event in enumerate(events))


def _fault(place: Place, reason: str) -> ContractError:
    return ContractError(f"{json_path(place)}: {reason}")
