"""The laws of a contract: valid OpenAPI 3.0, extension tables that fit each other, and what the
server's rules need.

`stub-server check`, the start with overlays and `stub-server verify --write-overlay` share them.
Begin with `faults`, which stop a start; an example that does not fit is only told.
"""

from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from ..core.record import UniqueKey
from ..core.text import counted
from .document import JSON, Document, Operation
from .formats import Formats
from .lifecycles import Lifecycle
from .schema import Schemas
from .source import ContractError, Json, Place, error_at, nodes, read

Faults = Iterator[ContractError]


def faults(document: Document, shipped: Document) -> list[ContractError]:
    """Everything for which a server does not start with a contract; `shipped` is the contract
    without overlays.

    The tables of a document that is no valid OpenAPI are not read, nor is one whose operations have
    no names.
    """
    found = [*_openapi(document)]
    try:
        return found or [*_tables(document), *_needs(document, shipped)]
    except ContractError as error:
        return [error]


def _openapi(document: Document) -> Faults:
    # Imported here because they are slow to import and a start without overlays does not need them.
    from jsonschema import Draft4Validator
    from jsonschema.exceptions import best_match
    from openapi_spec_validator import OpenAPIV30SpecValidator
    from openapi_spec_validator.schemas import schema_v30

    try:
        found = [*OpenAPIV30SpecValidator(document.raw).iter_errors()]
    except RecursionError:
        yield error_at(["components", "schemas"], "a schema is part of itself, by allOf or items")
        return
    misshapen = []
    if found:
        for error in Draft4Validator(dict(schema_v30)).iter_errors(document.raw):
            # Of a choice without a match it only says so; the best match is what is wrong.
            misshapen.append(best_match([error]) or error)
    for error in misshapen or found:
        # A default is checked by itself: where its schema is, is looked up.
        place = list(error.absolute_path)
        if not place:
            place = next((at for at, node in nodes(document.raw) if node is error.schema), [])
        yield error_at(place, error.message[:400])


def misshapen(data: Json, shape: str) -> Faults:
    """What of some data has another shape than a file beside this one says."""
    from jsonschema import Draft4Validator  # slow to import, and only needed with overlays
    from jsonschema.exceptions import best_match

    for error in Draft4Validator(read(Path(__file__).with_name(shape))).iter_errors(data):
        nearest = best_match([error]) or error
        reason = f"{nearest.message[:400]}: {nearest.schema.get('description', '')}"
        yield error_at(list(nearest.absolute_path), reason.removesuffix(": "))


def shape_faults(raw: Json, shipped: Json) -> Faults:
    """What the extension tables of a document have in another shape than `extensions.yaml` says, or
    lack altogether.

    Nothing is generated from them before.
    """
    found = [*misshapen(raw, "extensions.yaml")]
    yield from found
    if found:
        return
    schemas = raw["components"]["schemas"]
    for name, schema in shipped["components"]["schemas"].items():
        if "x-lifecycle" in schema and "x-lifecycle" not in schemas.get(name, {}):
            yield error_at(
                ["components", "schemas", name, "x-lifecycle"],
                "the server needs the states of this resource: keep its x-lifecycle",
            )


# -- the tables, each against the others

_IN_STATES = "{} is no state of this lifecycle: take it out, or put it into states"


def _tables(document: Document) -> Faults:
    scopes = {scope["name"] for scope in document.scopes}
    for operation in document.operations.values():
        place = [*operation.at, "x-scopes"]
        yield from _unknown(
            sorted(operation.scopes),
            scopes,
            place,
            "{} is no scope of this contract: take it out, or describe it in x-scopes",
        )
        if 204 in operation.responses and operation.responses[204].media:
            place = [*operation.at, "responses", "204", "content"]
            yield error_at(place, "a 204 has no content: take it out")
    for lifecycle in document.lifecycles.values():
        yield from _states(document, lifecycle)
        yield from _moves(document, lifecycle)
    for name in document.events:
        yield from _payload(document, name)


def _unknown(names: Iterable[str], known: Container[str], place: Place, reason: str) -> Faults:
    """The names that are not known, for a reason in which each has its place."""
    for name in names:
        if name not in known:
            yield error_at(place, reason.format(name))


def _states(document: Document, lifecycle: Lifecycle) -> Faults:
    resource, member, known = lifecycle.resource, lifecycle.field, set(lifecycle.states)
    field = document.resolve(document.schema(resource).get("properties", {}).get(member))
    if field is None:
        reason = f"{resource} has no member {member}: name one that it has"
        yield error_at([*lifecycle.at, "field"], reason)
    elif "enum" in field:
        enum = {str(value) for value in field["enum"] if value is not None}
        for name in sorted(enum ^ known):
            where = f"the enum of {member}" if name in enum else "states"
            reason = f"{name} is in {where} only: put it into both, or into neither"
            yield error_at([*lifecycle.at, "states"], reason)
    for name, states in lifecycle.sets.items():
        for number, state in enumerate(states):
            yield from _unknown([state], known, [*lifecycle.at, "sets", name, number], _IN_STATES)


def _moves(document: Document, lifecycle: Lifecycle) -> Faults:
    for number, move in enumerate(lifecycle.moves):
        place, states = [*lifecycle.at, "moves", number], lifecycle.states
        yield from _unknown([move.from_], (*states, "new"), [*place, "from"], _IN_STATES)
        yield from _unknown([move.to], (*states, "deleted"), [*place, "to"], _IN_STATES)
        if "x-names-from" not in document.raw:  # else another document describes the events
            yield from _unknown(
                move.events,
                document.events,
                place,
                "{} is no event of this contract: take it out, or describe it in x-webhooks",
            )


def _payload(document: Document, name: str) -> Faults:
    """A payload holds the resource under its key, and has such an example."""
    event = document.events[name]
    post: Place = ["x-webhooks", name, "post"]
    key = event["payload_key"]
    if key not in document.schema_at(event["schema"], ["data"]).get("properties", {}):
        yield error_at(
            [*post, "x-payload-key"],
            f"data of the payload has no member {key}: name one that it has",
        )
    example = event["example"]["data"].get(key)
    if not isinstance(example, dict) or (
        event["record"] and not isinstance(example.get("id"), str)
    ):
        yield error_at(
            [*post, "requestBody", "content", JSON, "example"],
            f"data.{key} must be an example of the resource, with its id",
        )


# -- what the rules need of the shipped contract


def _needs(document: Document, shipped: Document) -> Faults:
    for name, old in shipped.lifecycles.items():
        new = document.lifecycles[name]
        if new.field != old.field:
            yield error_at(
                [*new.at, "field"], f"the server stores the state in {old.field}: do not change it"
            )
        yield from _unknown(
            old.states,
            new.states,
            [*new.at, "states"],
            "the rules of the server need the state {}: keep it, without moves if it never occurs",
        )
        yield from _unknown(
            old.sets,
            new.sets,
            [*new.at, "sets"],
            "the rules of the server need the set {}: keep it, empty if it has no state",
        )
    for name in {**shipped.unique, **document.unique}:
        yield from _keys(document, shipped, name)
    for operation in shipped.operations.values():
        if operation.id in document.operations:
            yield from _served(document.operations[operation.id], operation)


def _keys(document: Document, shipped: Document, name: str) -> Faults:
    """Unique keys by which the server finds records are as they were; a new one can be refused."""
    place: Place = ["components", "schemas", name, "x-unique"]
    old, new = shipped.unique.get(name, ()), document.unique.get(name, ())
    for key in old:
        is_fixed = key.code is None or (name, key.name) == ("Customer", "document")
        if is_fixed and key not in [each._replace(code=key.code) for each in new]:
            yield error_at(
                place,
                f"the server finds records of {name} by {key.name}: keep its unique key as it is",
            )
    for number, key in enumerate(new):
        if key not in old:
            yield from _new_key(document, shipped, name, key, [*place, number])


def _new_key(
    document: Document, shipped: Document, name: str, key: UniqueKey, place: Place
) -> Faults:
    """A new unique key is of texts that a request chooses, and has a code that an
    operation lists.
    """
    refusing = sorted(name for name, keys in shipped.unique.items() if _have_codes(keys))
    if name not in refusing:
        reason = f"x-unique has no effect here, only in {', '.join(refusing)}: remove it"
        yield error_at(place, reason)
        return
    conflicts = [operation.responses.get(409) for operation in document.operations.values()]
    if not any(key.code in conflict.codes for conflict in conflicts if conflict is not None):
        reason = f"no operation refuses with {key.code}: list it in x-codes of a 409"
        yield error_at([*place, "code"], reason)
    create = document.operations.get(f"create{name}")
    asked = {} if create is None else create.body or {}
    for member in filter(None, (*key.members, key.scope)):
        schema = document.schema_at(asked, [member])
        if schema.get("type") != "string" or "enum" in schema:
            reason = f"a request to create a {name} has no text {member}: take it out"
            yield error_at(place, reason)


def _have_codes(keys: Iterable[UniqueKey]) -> bool:
    return any(key.code for key in keys)


def _served(new: Operation, old: Operation) -> Faults:
    """An operation can be served by the handler of the shipped one."""
    ids = old.path.count("{")
    if new.path.count("{") != ids:
        yield error_at(
            new.at,
            f"the path of {new.id} must have {counted(ids, 'id')}, and has {new.path.count('{')}:"
            " correct it",
        )
    if old.scheme is not None and new.scheme is None:
        yield error_at(new.at, f"{new.id} needs to know its caller: keep a scheme in its security")
    place = [*new.at, "responses"]
    status = new.success_like(old)
    if status is None:
        yield error_at(
            place, f"{new.id}: list exactly one status below 300, or include {old.successes[0]}"
        )
    elif (
        status != 204
        and JSON in old.responses[old.successes[0]].media
        and JSON not in new.responses[status].media
    ):
        yield error_at(
            [*place, str(status)],
            f"the server answers {JSON}: keep its content, or make the status 204",
        )


# -- what does not stop a start


def unfit_examples(document: Document, formats: Formats) -> Faults:
    """The examples of bodies and events that their schemas do not accept."""
    schemas = Schemas(document.raw, formats)
    for at, node in nodes(document.raw):
        if not isinstance(node, dict) or at[-2:-1] != ["content"] or "schema" not in node:
            continue
        shown = []
        if "example" in node:
            shown.append(([*at, "example"], node["example"]))
        for name, raw in node.get("examples", {}).items():
            shown.append(([*at, "examples", name], document.resolve(raw).get("value")))
        validator = schemas.compile(
            node["schema"], request=at[0] == "paths" and "requestBody" in at
        )
        for place, value in shown:
            error = validator.first_error(value)
            if error is not None:
                yield error_at(place, f"the example does not fit its schema: {error.message[:300]}")
