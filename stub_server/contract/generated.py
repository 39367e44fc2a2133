"""The parts of a contract that are generated from its extension tables.

| Mark | What is generated | From |
|---|---|---|
| `x-webhooks` | `x-emitted-by` of each event | `by` of `x-change` and of moves |
| an operation | `x-emits` | the events that it raises by these |
| `x-enum-from` | the enum | events, scopes, operations, states |
| `x-one-of-from` | a choice of all webhook payloads | `x-webhooks` |

The tables have the shapes of `extensions.yaml`: those of overlays are checked before.
"""

from collections.abc import Iterator

from .source import METHODS, Json, Place, error_at, nodes, value_at

EMITTING = "x-emits"  # in the `by` of a move: every operation that may raise an event
AUTOMATIC = ("clock", "simulation")
SOURCE, PAYLOADS = "x-enum-from", "x-one-of-from"


def operations_of(document: dict[str, Json]) -> Iterator[dict[str, Json]]:
    """The operations of a document that have a name."""
    for item in document["paths"].values():
        for operation in [item[method] for method in METHODS if method in item]:
            if isinstance(operation, dict) and "operationId" in operation:
                yield operation


class Names:
    """The names that a document gives its events, scopes, operations and states, in its order."""

    def __init__(self, document: dict[str, Json]) -> None:
        schemas, scopes = document["components"].get("schemas", {}), document.get("x-scopes", [])
        self.lifecycles = {
            name: schema["x-lifecycle"]
            for name, schema in schemas.items()
            if "x-lifecycle" in schema
        }
        self.payloads: dict[str, str] = {
            name: item["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            for name, item in document.get("x-webhooks", {}).items()
        }
        self.emitted_by = _emitted_by(document)
        events = list(self.payloads)
        resources = list(dict.fromkeys(name.partition(".")[0] for name in events))
        owners = list(dict.fromkeys(scope["resource"] for scope in scopes))
        names = [scope["name"] for scope in scopes]
        self._lists = {
            "event_types": events,
            "event_resources": resources,
            "event_patterns": ["*", *(f"{resource}.*" for resource in resources), *events],
            "scopes": names,
            "assignable_scopes": [scope["name"] for scope in scopes if scope["assignable"]],
            "scope_resources": owners,
            # What a token may be given: all, a scope, or every scope of a resource.
            "scope_patterns": ["*", *names, *(f"{owner}:*" for owner in owners)],
            "operations": [operation["operationId"] for operation in operations_of(document)],
        }
        for name, lifecycle in self.lifecycles.items():
            moves = lifecycle["moves"]
            of_states = {
                **lifecycle.get("sets", {}),
                "states": lifecycle["states"],
                "initial": dict.fromkeys(move["to"] for move in moves if move["from"] == "new"),
                "moves": dict.fromkeys(move["control"] for move in moves if "control" in move),
            }
            self._lists |= {f"{kind}:{name}": list(names) for kind, names in of_states.items()}

    def of(self, at: Place, source: Json) -> list[str]:
        """The names for the schema at a place. Raises ContractError for an unknown source."""
        if source == "payload_events":
            reference = f"#/components/schemas/{at[2]}"
            return [name for name, payload in self.payloads.items() if payload == reference]
        if not isinstance(source, str) or source not in self._lists:
            raise error_at([*at, SOURCE], f"there is no list of names {source!r}")
        return [*self._lists[source]]  # an overlay may change it in one place only


def generate(
    document: dict[str, Json], names: Names, shipped: dict[str, Json] | None = None
) -> None:
    """Generate all parts. Raises ContractError.

    Where an overlay has changed an enum or a choice that the `shipped` document has, the change
    stays.
    """
    _write_events(document, names)
    for at, schema in [*nodes(document, ("example", "examples"))]:
        if isinstance(schema, dict) and SOURCE in schema:
            enum = names.of(at, schema[SOURCE])
            if enum or schema[SOURCE] != "payload_events":
                _write(document, at, "enum", enum, shipped)
            else:  # no event has this payload, and an empty enum is not valid
                schema.pop("enum", None)
    for name, schema in document["components"].get("schemas", {}).items():
        if PAYLOADS in schema and names.payloads:
            at = ["components", "schemas", name]
            references = dict.fromkeys(names.payloads.values())
            _write(
                document, at, "oneOf", [{"$ref": reference} for reference in references], shipped
            )
            by_type = {"propertyName": "type", "mapping": names.payloads}
            _write(document, at, "discriminator", by_type, shipped)


def _write_events(document: dict[str, Json], names: Names) -> None:
    """Write which operations raise which events."""
    for move in _moves(document):
        if EMITTING in move.get("by", ()):
            raising = [name for by in names.emitted_by.values() for name in by]
            move["by"] = _in_order([*raising, *(name for name in move["by"] if name != EMITTING)])
    for event, item in document.get("x-webhooks", {}).items():
        item["post"]["x-emitted-by"] = names.emitted_by.get(event, [])
    for operation in operations_of(document):
        events = [event for event, by in names.emitted_by.items() if operation["operationId"] in by]
        operation.pop("x-emits", None)
        if events:
            operation["x-emits"] = events


def _emitted_by(document: dict[str, Json]) -> dict[str, list[str]]:
    """What raises each event: whatever makes a move that raises it, and the operations of
    its change.
    """
    found: dict[str, list[str]] = {}
    for event, item in document.get("x-webhooks", {}).items():
        by: list[str] = []
        for move in _moves(document):
            if event in (move.get("event"), *move.get("also", ())):
                by += move.get("by", ())
        found[event] = _in_order([*by, *item["post"].get("x-change", {}).get("by", ())])
    return found


def _in_order(names: list[str]) -> list[str]:
    """Each name once, operations before what happens by itself."""
    return sorted(dict.fromkeys(names), key=AUTOMATIC.__contains__)


def _moves(document: dict[str, Json]) -> list[Json]:
    moves: list[Json] = []
    for schema in document["components"].get("schemas", {}).values():
        moves += schema.get("x-lifecycle", {}).get("moves", ())
    return moves


def _write(document: Json, at: Place, key: str, made: Json, shipped: Json) -> None:
    """Write a member of an object, unless an overlay has written it."""
    node = value_at(document, at)
    if shipped is None or node.get(key) == _at(shipped, at).get(key):
        node[key] = made


def _at(document: Json, at: Place) -> Json:
    """The object at a place, an empty one if there is none."""
    try:
        return value_at(document, at)
    except KeyError:
        return {}
