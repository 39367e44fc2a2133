"""The parts of a contract that are generated from its extension tables.

| Mark | What is generated | From |
|---|---|---|
| `x-webhooks` | `x-emitted-by` of each event | `by` of `x-change` and of moves |
| an operation | `x-emits` | the events that it raises by these |
| `x-enum-from` | the enum | events, scopes, operations, states |
| `x-one-of-from` | a choice of all webhook payloads | `x-webhooks` |

The tables have the shapes of `extensions.yaml`: those of overlays are checked before.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain

from .source import Json, JsonObject, Place, error_at, nodes, operations_in, value_at

EMITTING = "x-emits"  # in the `by` of a move: every operation that may raise an event
AUTOMATIC = ("clock", "simulation")
SOURCE, PAYLOADS, ID = "x-enum-from", "x-one-of-from", "operationId"


Lists = dict[str, list[str]]


class Names:
    """The names that a document gives its events, scopes, operations and states, in its order."""

    def __init__(self, document: JsonObject) -> None:
        self.lifecycles: JsonObject = {}
        self.payloads: dict[str, str] = {}
        self.lists: Lists = {}
        for name, schema in document["components"].get("schemas", {}).items():
            self.lists[f"payload_events:{name}"] = []
            if "x-lifecycle" in schema:
                self.lifecycles[name] = schema["x-lifecycle"]
                for kind, names in _of_states(schema["x-lifecycle"]).items():
                    self.lists[f"{kind}:{name}"] = [*dict.fromkeys(names)]
        for name, item in document.get("x-webhooks", {}).items():
            media = item["post"]["requestBody"]["content"]["application/json"]
            self.payloads[name] = media["schema"]["$ref"]
            schema = self.payloads[name].rpartition("/")[2]
            self.lists.setdefault(f"payload_events:{schema}", []).append(name)
        self.emitted_by = _emitted_by(document)
        self.lists |= _of_events([*self.payloads]) | _of_scopes(document.get("x-scopes", ()))
        operations = [raw for _, _, raw in operations_in(document) if isinstance(raw, dict)]
        self.lists["operations"] = [each[ID] for each in operations if ID in each]

    def of(self, source: Json, at: Place) -> list[str]:
        """The names for the schema at a place. Raises ContractError for an unknown source."""
        if str(source) not in self.lists:
            raise error_at([*at, SOURCE], f"there is no list of names {source!r}")
        return [*self.lists[str(source)]]  # an overlay may change it in one place only


def _of_events(events: list[str]) -> Lists:
    """The names of events, of their resources, and of the patterns that select some."""
    resources = [*dict.fromkeys(event.partition(".")[0] for event in events)]
    patterns = [f"{resource}.*" for resource in resources]
    return {
        "event_types": events,
        "event_resources": resources,
        "event_patterns": ["*", *patterns, *events],
    }


def _of_scopes(scopes: Iterable[Json]) -> Lists:
    """The names of scopes and of their resources; a token may be given a pattern, too."""
    names = [scope["name"] for scope in scopes]
    owners = [*dict.fromkeys(scope["resource"] for scope in scopes)]
    return {
        "scopes": names,
        "assignable_scopes": [scope["name"] for scope in scopes if scope["assignable"]],
        "scope_resources": owners,
        "scope_patterns": ["*", *names, *(f"{owner}:*" for owner in owners)],
    }


def _of_states(lifecycle: Json) -> Lists:
    """The names of states, of the initial ones, of sets of them, and of the moves by a control."""
    moves, sets = lifecycle["moves"], lifecycle.get("sets", {})
    initial = [move["to"] for move in moves if move["from"] == "new"]
    return {
        **sets,
        "states": lifecycle["states"],
        "initial": initial,
        "moves": [move["control"] for move in moves if "control" in move],
    }


def generate(document: JsonObject, names: Names, shipped: JsonObject | None = None) -> None:
    """Generate all parts. Raises ContractError.

    Where an overlay has changed an enum or a choice that the `shipped` document has, the change
    stays.
    """
    _write_events(document, names)
    for at, schema in [*nodes(document, ("example", "examples"))]:
        if not isinstance(schema, dict):
            continue
        if SOURCE in schema:
            enum = names.of(schema[SOURCE], at)
            if enum or not str(schema[SOURCE]).startswith("payload_events"):
                _write(schema, "enum", enum, at, shipped)
            else:  # no event has this payload, and an empty enum is not valid
                schema.pop("enum", None)
        if PAYLOADS in schema and names.payloads:
            _write(
                schema,
                "oneOf",
                [{"$ref": payload} for payload in dict.fromkeys(names.payloads.values())],
                at,
                shipped,
            )
            _write(
                schema,
                "discriminator",
                {"propertyName": "type", "mapping": names.payloads},
                at,
                shipped,
            )


def _write(node: JsonObject, key: str, made: Json, at: Place, shipped: Json) -> None:
    """Write a member of the object at a place, unless an overlay has written it."""
    old: JsonObject = {}
    with suppress(KeyError):
        old = value_at(shipped, at)
    if shipped is None or node.get(key) == old.get(key):
        node[key] = made


def _write_events(document: JsonObject, names: Names) -> None:
    """Write which operations raise which events."""
    for move in _moves(document):
        if EMITTING in move.get("by", ()):
            raising = chain(*names.emitted_by.values(), move["by"])
            move["by"] = _in_order(each for each in raising if each != EMITTING)
    for event, item in document.get("x-webhooks", {}).items():
        item["post"]["x-emitted-by"] = names.emitted_by.get(event, [])
    for _, _, operation in operations_in(document):
        if isinstance(operation, dict):
            ident = operation.get(ID)
            operation[EMITTING] = [name for name, by in names.emitted_by.items() if ident in by]
            if not operation[EMITTING]:
                del operation[EMITTING]


def _emitted_by(document: JsonObject) -> Lists:
    """What raises each event: whatever makes a move that raises it, and the operations of
    its change.
    """
    found: Lists = {}
    for event, item in document.get("x-webhooks", {}).items():
        by: list[str] = []
        for move in _moves(document):
            if event in (move.get("event"), *move.get("also", ())):
                by += move.get("by", ())
        found[event] = _in_order([*by, *item["post"].get("x-change", {}).get("by", ())])
    return found


def _in_order(names: Iterable[str]) -> list[str]:
    """Each name once, operations before what happens by itself."""
    return sorted(dict.fromkeys(names), key=AUTOMATIC.__contains__)


def _moves(document: JsonObject) -> Iterator[Json]:
    for schema in document["components"].get("schemas", {}).values():
        yield from schema.get("x-lifecycle", {}).get("moves", ())
