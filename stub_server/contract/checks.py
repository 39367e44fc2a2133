"""The laws of a contract: valid OpenAPI 3.0, extension tables that fit each other, and what the server's rules need.

`stub-server check`, the start with overlays and `stub-server verify --write-overlay` share them. Begin with `faults`,
which stop a start; `warnings` are for readers and generated clients.
"""

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

from ..kernel.text import counted
from .document import JSON, MERCHANT, Document, Lifecycle, Operation
from .formats import NO_FORMATS, Formats
from .generated import AUTOMATIC, SOURCE, marked_schemas
from .schema import Schemas
from .source import ContractError, Json, Place, error_at, nodes, path_to, read

# A webhook subscribes to `resource.*`, and payloads contain the name without escaping.
_EVENT_NAME = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+").fullmatch


def faults(document: Document, shipped: Document) -> list[ContractError]:
    """Everything for which a server does not start with a contract; `shipped` is the contract without overlays.

    The tables of a document that is no valid OpenAPI are not read, nor is one whose operations have no names.
    """
    found = [*_openapi(document)]
    try:
        return found or [*_tables(document), *_needs(document, shipped)]
    except ContractError as error:
        return [error]


def _openapi(document: Document) -> Iterator[ContractError]:
    # Imported here because they are slow to import and a start without overlays does not need them.
    from jsonschema import Draft4Validator
    from jsonschema.exceptions import best_match
    from openapi_spec_validator import OpenAPIV30SpecValidator
    from openapi_spec_validator.schemas import schema_v30

    found = [*OpenAPIV30SpecValidator(document.raw).iter_errors()]
    # For a choice without a match the validator only says so; the best match is the member that is wrong.
    misshapen = Draft4Validator(dict(schema_v30)).iter_errors(document.raw) if found else ()
    for error in [best_match([each]) or each for each in misshapen] or found:
        # A default is checked by itself: where its schema is, is looked up.
        place = list(error.absolute_path) or path_to(error.schema, document.raw) or []
        yield error_at(place, error.message[:400])


def shape_faults(raw: Json) -> Iterator[ContractError]:
    """What the extension tables of a document have in another shape than `extensions.yaml` says.

    Nothing is generated from them before.
    """
    from jsonschema import Draft4Validator  # slow to import, and only needed with overlays
    from jsonschema.exceptions import best_match
    from openapi_spec_validator.schemas import schema_v30

    def unlike(shape: Draft4Validator, value: Json, place: Place) -> Iterator[ContractError]:
        for error in shape.iter_errors(value):
            found = best_match([error]) or error
            reason = f"{found.message[:400]}: {found.schema.get('description', '')}".removesuffix(": ")
            yield error_at([*place, *found.absolute_path], reason)

    tables = read(Path(__file__).with_name("extensions.yaml"))
    basis = Draft4Validator(tables["definitions"]["basis"])
    for at, node in nodes(raw):
        for name in ("x-basis", "x-basis-notes"):
            if isinstance(node, dict) and name in node:
                yield from unlike(basis, node[name], [*at, name])
    found = [*unlike(Draft4Validator(tables), raw, [])]
    yield from found
    if found:
        return
    # OpenAPI 3.0 has no webhooks, so its validator does not check payload schemas that are written in place.
    payload = Draft4Validator({"$ref": "#/definitions/Schema", "definitions": schema_v30["definitions"]})
    for name, item in raw.get("x-webhooks", {}).items():
        if _EVENT_NAME(name) is None:
            yield error_at(["x-webhooks", name], "call an event resource.past_tense")
        schema = item["post"]["requestBody"]["content"][JSON]["schema"]
        if "$ref" not in schema:
            yield from unlike(payload, schema, ["x-webhooks", name, "post", "requestBody", "content", JSON, "schema"])


# -- the tables, each against the others


def _tables(document: Document) -> Iterator[ContractError]:
    yield from _operations(document)
    for lifecycle in document.lifecycles.values():
        yield from _states(document, lifecycle)
        yield from _moves(lifecycle)
    yield from _unique(document)
    if "x-names-from" in document.raw:
        return  # the events are described in another document
    for name in document.events:
        yield from _payload(document, name)
    yield from _events(document)
    yield from _entries(document)


_IN_SCOPES = "{} is no scope of this contract: take it out, or describe it in x-scopes"
_IN_EVENTS = "{} is no event of this contract: take it out, or describe it in x-webhooks"
_IN_STATES = "{} is no state of this lifecycle: take it out, or put it into states"


def _unknown(
    known: AbstractSet[str], names: Iterable[tuple[str | int, str]], place: Place, text: str
) -> Iterator[ContractError]:
    """Names, given with their steps, that are not known."""
    for step, name in names:
        if name not in known:
            yield error_at([*place, step], text.format(name))


def _operations(document: Document) -> Iterator[ContractError]:
    scopes = {scope["name"] for scope in document.scopes}
    for operation in document.operations.values():
        yield from _unknown(scopes, (("x-scopes", name) for name in sorted(operation.scopes)), operation.at, _IN_SCOPES)
        if "x-names-from" not in document.raw:  # else bundling has taken the events of the other document
            place = [*operation.at, "x-emits"]
            yield from _unknown(document.events.keys(), enumerate(operation.emits), place, _IN_EVENTS)
        if 204 in operation.responses and operation.responses[204].media:
            yield error_at([*operation.at, "responses", "204", "content"], "a 204 has no content: take it out")


def _states(document: Document, lifecycle: Lifecycle) -> Iterator[ContractError]:
    place: Place = ["components", "schemas", lifecycle.resource, "x-lifecycle"]
    field = document.resolve(document.schema(lifecycle.resource).get("properties", {}).get(lifecycle.field))
    if field is None:
        yield error_at([*place, "field"], f"{lifecycle.resource} has no member {lifecycle.field}: name one that it has")
    elif "enum" in field:
        different = set(lifecycle.states) ^ {str(value) for value in field["enum"] if value is not None}
        for name in sorted(different):
            where = "states" if name in lifecycle.states else f"the enum of {lifecycle.field}"
            yield error_at([*place, "states"], f"{name} is in {where} only: put it into both, or into neither")
    for name, states in lifecycle.sets.items():
        yield from _unknown(set(lifecycle.states), enumerate(states), [*place, "sets", name], _IN_STATES)


def _moves(lifecycle: Lifecycle) -> Iterator[ContractError]:
    seen = set()
    for number, move in enumerate(lifecycle.moves):
        place: Place = ["components", "schemas", lifecycle.resource, "x-lifecycle", "moves", number]
        yield from _unknown({*lifecycle.states, "new"}, [("from", move.from_)], place, _IN_STATES)
        yield from _unknown({*lifecycle.states, "deleted"}, [("to", move.to)], place, _IN_STATES)
        if move.from_ == move.to and move.name is None:
            yield error_at(place, f"a move that stays in {move.to} needs a name")
        key = (move.from_, move.to, move.name)
        if key in seen:
            yield error_at(place, f"the move from {move.from_} to {move.to} is defined twice: give it a name")
        seen.add(key)


def _unique(document: Document) -> Iterator[ContractError]:
    conflicts = (op.responses[409].codes for op in document.operations.values() if 409 in op.responses)
    listed = {code for codes in conflicts for code in codes}
    for resource, keys in document.unique.items():
        properties = document.schema(resource).get("properties", {})
        text = f"{resource} has no member {{}}: name one that it has"
        seen = set()
        for number, key in enumerate(keys):
            place: Place = ["components", "schemas", resource, "x-unique", number]
            if key.name in seen:
                yield error_at([*place, "members"], f"{key.name} has a unique key already: take one out")
            seen.add(key.name)
            yield from _unknown(properties.keys(), enumerate(key.members), [*place, "members"], text)
            for index, member in enumerate(key.members):
                if key.ignores and document.resolve(properties.get(member, {})).get("type") != "string":
                    yield error_at([*place, "members", index], f"{member} is no string: remove it, or `ignores`")
            if key.scope is not None:
                yield from _unknown(properties.keys(), [("scope", key.scope)], place, f"{text}, or {MERCHANT}")
            if key.code is not None and key.code not in listed:
                reason = f"no operation refuses with {key.code}: list it in x-codes of the 409 of those that can"
                yield error_at([*place, "code"], reason)


def _payload(document: Document, name: str) -> Iterator[ContractError]:
    """A payload holds the resource under its key, allows the event as its type, and has such an example."""
    event = document.events[name]
    post: Place = ["x-webhooks", name, "post"]
    content: Place = [*post, "requestBody", "content", JSON]
    key, body = event["payload_key"], document.resolve(event["schema"])
    data = document.resolve(body.get("properties", {}).get("data")) or {}
    if key not in data.get("properties", {}):
        yield error_at([*post, "x-payload-key"], f"data of the payload has no member {key}: name one that it has")
    type_ = document.resolve(body.get("properties", {}).get("type")) or {}
    if name not in type_.get("enum", [name]):
        yield error_at([*content, "schema"], f"the type of this payload cannot be {name}: put it into the enum of type")
    example = event["example"]["data"].get(key)
    if not isinstance(example, dict) or (event["record"] and not isinstance(example.get("id"), str)):
        yield error_at([*content, "example"], f"data.{key} must be an example of the resource, with its id")


def _events(document: Document) -> Iterator[ContractError]:
    """Every event that a move, a change or an enum names is described, and of that resource."""
    named: list[tuple[Place, str, str]] = []
    for name, schema in document.raw["components"]["schemas"].items():
        place: Place = ["components", "schemas", name]
        for number, move in enumerate(schema.get("x-lifecycle", {}).get("moves", ())):
            at: Place = [*place, "x-lifecycle", "moves", number]
            named += [([*at, "event"], name, move["event"])] if move.get("event") else []
            named += [([*at, "also", index], name, event) for index, event in enumerate(move.get("also", ()))]
        for change, events in schema.get("x-events", {}).items():
            at = [*place, "x-events", change]
            steps = [(at, events)] if isinstance(events, str) else [([*at, i], event) for i, event in enumerate(events)]
            named += [(step, name, event) for step, event in steps]
    for at, name, event in named:
        found = document.events.get(event)
        if found is None:
            yield error_at(at, _IN_EVENTS.format(event))
        # A test event (webhook.test) belongs to Webhook, but its payload holds no record.
        elif found["record"] != name and not (name == "Webhook" and found["record"] is None):
            shown = f"data.{found['payload_key']} of its payload is no {name}"
            yield error_at(at, f"{event} is of another resource: {shown}. Refer to {name} there, or name another event")
    for marked, schema in marked_schemas(document.raw):
        unknown = {str(value) for value in schema.get("enum", ()) if value is not None} - document.events.keys()
        if schema.get(SOURCE) == "event_types" and unknown:  # an overlay has taken an event away
            yield error_at([*marked, "enum"], _IN_EVENTS.format(min(unknown)))


def _entries(document: Document) -> Iterator[ContractError]:
    """The entries of the event and scope catalogues fit the schemas of their responses."""
    entries: list[tuple[str, Place, Json]] = [
        ("Scope", ["x-scopes", number], {**scope, "operations": []}) for number, scope in enumerate(document.scopes)
    ]
    for name, event in document.events.items():
        entry = {member: event[member] for member in ("description", "emitted_by", "payload_key")}
        entry |= {"type": name, "resource": name.partition(".")[0], "api_version": "v2"}
        entries.append(("WebhookEventType", ["x-webhooks", name], entry))
    known, schemas = document.raw["components"]["schemas"], Schemas(document.raw, NO_FORMATS)
    for component, place, entry in entries:
        error = schemas.component(component).first_error(entry) if component in known else None
        if error is not None:
            yield error_at(place, f"cannot be listed as {component} of the contract: {error.message[:300]}")


# -- what the rules need of the shipped contract


def _needs(document: Document, shipped: Document) -> Iterator[ContractError]:
    yield from _needed_states(document, shipped)
    yield from _needed_keys(document, shipped)
    yield from _new_keys(document, shipped)
    for old in shipped.operations.values():
        if old.id in document.operations:
            yield from _served(document.operations[old.id], old)


def _needed_states(document: Document, shipped: Document) -> Iterator[ContractError]:
    """States, sets of states, and the member that holds the state."""
    for name, old in shipped.lifecycles.items():
        place: Place = ["components", "schemas", name, "x-lifecycle"]
        new = document.lifecycles.get(name)
        if new is None:
            yield error_at(place, "the server needs the states of this resource: keep its x-lifecycle")
            continue
        if new.field != old.field:
            yield error_at([*place, "field"], f"the server stores the state in {old.field}: do not change it")
        need = "the rules of the server need the {}: keep it, {}"
        for state in old.states:
            if state not in new.states:
                yield error_at([*place, "states"], need.format(f"state {state}", "without moves if it never occurs"))
        for key in old.sets:
            if key not in new.sets:
                yield error_at([*place, "sets"], need.format(f"set {key}", "empty if it has no state"))


def _needed_keys(document: Document, shipped: Document) -> Iterator[ContractError]:
    """Unique keys by which the server finds records."""
    for name, keys in shipped.unique.items():
        kept = {key.name: key for key in document.unique.get(name, ())}
        for old in keys:
            is_needed = old.code is None or (name, old.name) == ("Customer", "document")
            key = kept.get(old.name)
            if is_needed and (key is None or key._replace(code=old.code) != old):
                reason = f"the server finds records of {name} by {old.name}: keep its unique key as it is"
                yield error_at(["components", "schemas", name, "x-unique"], reason)


def _new_keys(document: Document, shipped: Document) -> Iterator[ContractError]:
    """A new unique key is of texts that a request chooses, and has a code to refuse it with."""
    refusing = [name for name in sorted(shipped.unique) if any(key.code for key in shipped.unique[name])]
    for name, keys in document.unique.items():
        create = document.operations.get(f"create{name}")
        asked = document.schema_at(create.body, ()).get("properties", {}) if create and create.body else {}
        for number, key in enumerate(keys):
            if key in shipped.unique.get(name, ()):
                continue
            place: Place = ["components", "schemas", name, "x-unique", number]
            if name not in refusing:
                yield error_at(place, f"x-unique has no effect here, only in {', '.join(refusing)}: remove it")
                continue
            if key.code is None:
                yield error_at(place, "this unique key has no code for its refusal: add one")
            for member in (*key.members, *(() if key.scope is None else (key.scope,))):
                schema = document.resolve(asked.get(member, {}))
                if schema.get("type") != "string" or "enum" in schema:
                    yield error_at(place, f"a request to create a {name} has no text {member}: take it out")


def _served(new: Operation, old: Operation) -> Iterator[ContractError]:
    """An operation can be served by the handler of the shipped one."""
    ids = old.path.count("{")
    if new.path.count("{") != ids:
        reason = f"the path of {new.id} must have {counted(ids, 'id')}, and has {new.path.count('{')}: correct it"
        yield error_at(new.at, reason)
    if old.scheme is not None and new.scheme is None:
        yield error_at(new.at, f"{new.id} is about what the caller owns: keep a scheme in its security")
    place = [*new.at, "responses"]
    status = new.success_like(old)
    if status is None:
        yield error_at(place, f"{new.id}: list exactly one status below 300, or include {old.successes[0]}")
    elif status != 204 and JSON in old.responses[old.successes[0]].media and JSON not in new.responses[status].media:
        yield error_at([*place, str(status)], f"the server answers {JSON}: keep its content, or make the status 204")


# -- what does not stop a start


def warnings(document: Document, control: Document) -> Iterator[ContractError]:
    """What is wrong in a contract with which a server still starts: clients and readers need it.

    `control` is the control contract, whose operations moves may name.
    """
    moves = (move for lifecycle in document.lifecycles.values() for move in lifecycle.moves)
    changes = (events for changes in document.changes.values() for events in changes.values())
    raised = {event for events in (*(move.events for move in moves), *changes) for event in events}
    for name in document.events:
        if name not in raised:
            reason = f"nothing raises {name}: name it in x-lifecycle or x-events of its resource, or take it out"
            yield error_at(["x-webhooks", name], reason)
    actors = {*document.operations, *control.operations, *AUTOMATIC}
    for name, lifecycle in document.lifecycles.items():
        for number, move in enumerate(lifecycle.moves):
            for index, actor in enumerate(move.by):
                if actor not in actors:
                    place: Place = ["components", "schemas", name, "x-lifecycle", "moves", number, "by", index]
                    yield error_at(place, f"{actor} is no operation: name one, or {' or '.join(AUTOMATIC)}")
    codes = set(document.schema("ErrorCode").get("enum", ()))
    for operation in document.operations.values():
        yield from _names_of_orders(document, operation)
        for status, response in operation.raw["responses"].items():
            place = [*operation.at, "responses", status]
            yield from _codes(document, document.resolve(response), codes, place)
            for link, value in document.resolve(response).get("links", {}).items():
                yield from _link(
                    document, operation, document.resolve(response), document.resolve(value), [*place, "links", link]
                )


def unfit_examples(document: Document, formats: Formats) -> Iterator[ContractError]:
    """The examples of bodies and events that their schemas do not accept."""
    schemas, shown = Schemas(document.raw, formats), list[tuple[Place, Json, Json]]()
    for operation in document.operations.values():
        bodies: list[tuple[Place, Json]] = [([*operation.at, "requestBody"], operation.raw.get("requestBody", {}))]
        bodies += [([*operation.at, "responses", status], raw) for status, raw in operation.raw["responses"].items()]
        for place, body in bodies:
            for media, content in document.resolve(body).get("content", {}).items():
                for key, raw in content.get("examples", {}).items():
                    at = [*place, "content", media, "examples", key]
                    shown.append((at, content.get("schema", {}), document.resolve(raw).get("value")))
    for name, event in document.events.items():
        at = ["x-webhooks", name, "post", "requestBody", "content", JSON, "example"]
        shown.append((at, event["schema"], event["example"]))
    for place, schema, value in shown:
        is_request = place[0] == "paths" and place[3] == "requestBody"
        error = schemas.compile(schema, request=is_request).first_error(value)
        if error is not None:
            yield error_at(place, f"the example does not fit its schema: {error.message[:300]}")


def _names_of_orders(document: Document, operation: Operation) -> Iterator[ContractError]:
    """Generated clients name what `x-enum-varnames` names, one by one."""
    for parameter in operation.parameters:
        schema = document.resolve(parameter.schema)
        names = schema.get("x-enum-varnames")
        if names is not None and len(names) != len(schema.get("enum", ())):
            reason = f"{len(names)} names for {len(schema.get('enum', ()))} values: name each in x-enum-varnames"
            yield error_at([*parameter.at, "schema"], reason)


def _codes(document: Document, response: Json, known: set[str], place: Place) -> Iterator[ContractError]:
    """A refusal lists codes that exist, and its examples show them."""
    listed = response.get("x-codes", ())
    media = response.get("content", {}).get(JSON, {})
    for number, code in enumerate(listed):
        # Other bodies are reports, with codes of their own.
        if code not in known and media.get("schema") == {"$ref": "#/components/schemas/Error"}:
            yield error_at(
                [*place, "x-codes", number], f"{code} is no error code: take it out, or put it into ErrorCode"
            )
    codes = {value.get("code") for value in document.examples(response) if isinstance(value, dict)}
    for code in listed:
        if code not in codes:
            yield error_at(
                [*place, "content", JSON, "examples"], f"no example shows the code {code}: add one, or take it out"
            )


def _link(
    document: Document, operation: Operation, response: Json, link: Json, place: Place
) -> Iterator[ContractError]:
    """A link leads to an operation, by parameters that it has, from values that are there."""
    target = document.operations.get(link.get("operationId", ""))
    if target is None:
        yield error_at(place, f"{link.get('operationId')} is no operation of this contract: link to one")
        return
    known = {parameter.name: document.resolve(parameter.schema).get("type") for parameter in target.parameters}
    given = link.get("parameters", {})
    for name, expression in given.items():
        where: Place = [*place, "parameters", name]
        if name not in known:
            yield error_at(where, f"{target.id} has no parameter {name}: name one that it has")
        elif str(expression).startswith("$response.body#"):
            schema = response.get("content", {}).get(JSON, {}).get("schema", {})
            steps = [int(step) if step.isdigit() else step for step in str(expression).split("/")[1:]]
            found = document.schema_at(schema, steps)
            if not found or found.get("type") != known[name]:
                yield error_at(where, f"{expression} selects no {known[name]} of the response")
        elif str(expression) not in {f"$request.{sent.place}.{sent.name}" for sent in operation.parameters}:
            yield error_at(where, f"{expression} is no parameter of {operation.id}")
    for parameter in target.parameters:
        if parameter.place == "path" and parameter.name not in given:
            yield error_at(place, f"{target.id} needs {parameter.name}: give it in parameters")
