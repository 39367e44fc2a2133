"""What `stub-server check` finds wrong in a contract with which a server still starts. Clients and readers need it."""

from collections.abc import Iterator

from .document import JSON, Document, Operation
from .formats import Formats
from .generated import AUTOMATIC
from .schema import Schemas
from .source import ContractError, Json, Place, error_at


def unraised(document: Document) -> list[str]:
    """The events of the catalogue that no move and no change raises."""
    raised = {event for lifecycle in document.lifecycles.values() for move in lifecycle.moves for event in move.events}
    raised |= {event for changes in document.changes.values() for events in changes.values() for event in events}
    return [name for name in document.events if name not in raised]


def faults(document: Document, control: Document) -> Iterator[ContractError]:
    """What breaks a law, with its JSONPath. `control` is the control contract, whose operations moves may name."""
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
    schemas = Schemas(document.raw, formats)
    for place, schema, value, is_request in _examples(document):
        error = schemas.compile(schema, request=is_request).first_error(value)
        if error is not None:
            yield error_at(place, f"the example does not fit its schema: {error.message[:300]}")


def _examples(document: Document) -> Iterator[tuple[Place, Json, Json, bool]]:
    """(place, schema, value, whether of a request) of every example."""
    for operation in document.operations.values():
        request = document.resolve(operation.raw.get("requestBody"))
        bodies = [] if request is None else [([*operation.at, "requestBody"], request, True)]
        responses = operation.raw["responses"].items()
        bodies += [([*operation.at, "responses", status], document.resolve(raw), False) for status, raw in responses]
        for place, body, is_request in bodies:
            for media, content in body.get("content", {}).items():
                for key, raw in content.get("examples", {}).items():
                    value = document.resolve(raw).get("value")
                    yield [*place, "content", media, "examples", key], content.get("schema", {}), value, is_request
    for name, event in document.events.items():
        place = ["x-webhooks", name, "post", "requestBody", "content", JSON, "example"]
        yield place, event["schema"], event["example"], False


def _names_of_orders(document: Document, operation: Operation) -> Iterator[ContractError]:
    """Generated clients name what `x-enum-varnames` names, one by one."""
    for number, parameter in enumerate(operation.parameters):
        schema = document.resolve(parameter.schema)
        names = schema.get("x-enum-varnames")
        if names is not None and len(names) != len(schema.get("enum", ())):
            reason = f"{len(names)} names for {len(schema.get('enum', ()))} values: name each in x-enum-varnames"
            yield error_at([*operation.at, "parameters", number, "schema"], reason)


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
    shown = [document.resolve(example).get("value") for example in media.get("examples", {}).values()]
    codes = {value.get("code") for value in shown if isinstance(value, dict)}
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
            found = _selected(document, schema, str(expression).partition("#")[2])
            if found is None or found.get("type") != known[name]:
                yield error_at(where, f"{expression} selects no {known[name]} of the response")
        elif not _is_sent(operation, str(expression)):
            yield error_at(where, f"{expression} is no parameter of {operation.id}")
    for parameter in target.parameters:
        if parameter.place == "path" and parameter.name not in given:
            yield error_at(place, f"{target.id} needs {parameter.name}: give it in parameters")


def _is_sent(operation: Operation, expression: str) -> bool:
    place, _, name = expression.removeprefix("$request.").partition(".")
    return any((parameter.place, parameter.name) == (place, name) for parameter in operation.parameters)


def _selected(document: Document, schema: Json, pointer: str) -> Json | None:
    """The schema of what a JSON Pointer selects in what a schema describes; None where nothing can be."""
    node = document.resolve(schema)
    for step in pointer.split("/")[1:]:
        inner = node.get("items") if node.get("type") == "array" else node.get("properties", {}).get(step)
        if inner is None:
            return None
        node = document.resolve(inner)
    return node
