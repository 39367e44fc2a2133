"""The parts of a contract that are generated from its extension tables.

| Mark | What is generated | From |
|---|---|---|
| `x-webhooks` | `x-emitted-by` of each event | `x-emits` of operations, `by` of moves |
| `x-enum-from` | the enum | events, scopes, operations, states |
| `x-counts-of` | an integer member for each name | the same |
| `x-one-of-from` | a choice of all webhook payloads | `x-webhooks` |

The tables have the shapes of `extensions.yaml`: those of overlays are checked before.
"""

from collections.abc import Iterable, Iterator

from .source import ContractError, Json, json_path, nodes

ALL = "*"
EMITTING = "x-emits"  # in the `by` of a move: every operation that may raise an event
AUTOMATIC = ("clock", "simulation")
SOURCE, COUNTS, PAYLOADS = "x-enum-from", "x-counts-of", "x-one-of-from"
Emitting = tuple[str, list[str]]
"""An operationId and the events that it names in `x-emits`, or `*` for all."""
At = tuple[str | int, ...]
"""The place of a schema or of a member."""


def emitting(items: Iterable[Json]) -> Iterator[Emitting]:
    """The operations of path items, with the events that each names."""
    for item in items:
        for operation in item.values():
            if isinstance(operation, dict) and "operationId" in operation:
                yield str(operation["operationId"]), operation.get("x-emits", [])


class Names:
    """The names that a document gives its events, scopes, operations and states, in its order."""

    def __init__(self, document: dict[str, Json]) -> None:
        schemas, scopes = document["components"].get("schemas", {}), document.get("x-scopes", [])
        self.events = tuple(document.get("x-webhooks", {}))
        self.lifecycles = {name: schema["x-lifecycle"] for name, schema in schemas.items() if "x-lifecycle" in schema}
        self._emitted_by = {name: item["post"]["x-emitted-by"] for name, item in document.get("x-webhooks", {}).items()}
        self._payloads = payloads(document)
        self._stateless = schemas.keys() - self.lifecycles.keys()
        resources = list(dict.fromkeys(name.partition(".")[0] for name in self.events))
        owners = list(dict.fromkeys(scope["resource"] for scope in scopes))
        self.scope_patterns = ["*"]  # what a token may be given: every scope, every scope of a resource, or all
        for owner in owners:
            self.scope_patterns += [scope["name"] for scope in scopes if scope["resource"] == owner]
            self.scope_patterns.append(f"{owner}:*")
        self._lists = {
            "event_types": list(self.events),
            "event_resources": resources,
            "event_patterns": ["*", *(f"{resource}.*" for resource in resources), *self.events],
            "scopes": [scope["name"] for scope in scopes],
            "assignable_scopes": [scope["name"] for scope in scopes if scope["assignable"]],
            "scope_resources": owners,
            "scope_patterns": self.scope_patterns,
            "operations": [ident for ident, _ in emitting(document["paths"].values())],
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

    def of(self, source: str, component: str) -> list[str] | None:
        """The names for an `x-enum-from` in a component; None where an overlay has removed their lifecycle.

        Raises AttributeError or KeyError for an unknown source.
        """
        if source.partition(":")[2] in self._stateless:
            return None
        if source == "payload_events":
            reference = f"#/components/schemas/{component}"
            return [name for name, payload in self._payloads.items() if payload == reference]
        return self._lists[source]

    def emitted(self, operation: str, named: list[str]) -> list[str]:
        """The events of an operation: those of `named` that exist, then those whose `x-emitted-by` lists it."""
        if ALL in named:
            return list(self.events)
        known = [name for name in named if name in self._emitted_by]
        return known + [name for name, by in self._emitted_by.items() if operation in by and name not in known]


def payloads(document: dict[str, Json]) -> dict[str, str]:
    """The `$ref` of each event's payload that is not written in place, by event."""
    found = {}
    for name, item in document.get("x-webhooks", {}).items():
        schema = item["post"]["requestBody"]["content"]["application/json"]["schema"]
        if "$ref" in schema:
            found[name] = schema["$ref"]
    return found


def insert_emitters(document: dict[str, Json], controls: list[Emitting], before: dict[str, Json] | None = None) -> None:
    """Generate `x-emitted-by` of the events and `by` of the moves. `controls` are operations of the control contract.

    With `before`, the document before an overlay, a list that the overlay has changed stays.
    """
    earlier = {} if before is None else _emitters(before, controls)
    for event, by in _emitters(document, controls).items():
        post = document["x-webhooks"][event]["post"]
        if post.get("x-emitted-by") == earlier.get(event):
            post["x-emitted-by"] = by
    raising = [ident for ident, events in _operations(document, controls) if events]
    for move in _moves(document):
        if EMITTING in move.get("by", ()):
            move["by"] = [*raising, *(name for name in move["by"] if name != EMITTING)]


def _emitters(document: dict[str, Json], controls: list[Emitting]) -> dict[str, list[str]]:
    operations, moves, found = _operations(document, controls), _moves(document), {}
    for event in document.get("x-webhooks", {}):
        raising = [move for move in moves if event in (move.get("event"), *move.get("also", ()))]
        automatic = {name for move in raising for name in move.get("by", ())}
        found[event] = [ident for ident, events in operations if event in events or ALL in events]
        found[event] += [name for name in AUTOMATIC if name in automatic]
    return found


def _operations(document: dict[str, Json], controls: list[Emitting]) -> list[Emitting]:
    return [*emitting(document["paths"].values()), *controls]


def _moves(document: dict[str, Json]) -> list[Json]:
    schemas = document["components"].get("schemas", {}).values()
    return [move for schema in schemas for move in schema.get("x-lifecycle", {}).get("moves", ())]


def insert_names(document: dict[str, Json], names: Names, before: dict[str, Json] | None = None) -> None:
    """Generate enums, counts and choices of payloads. Raises ContractError.

    With `before`, the document before an overlay, an enum or a choice that the overlay has changed stays.
    """
    earlier = {} if before is None else {at: found for at, _, found in _named(before, Names(before))}
    for at, schema, found in _named(document, names):
        known = earlier.get(at, {})
        if COUNTS in found:
            _count(schema, [name for name in found[COUNTS] if name not in known.get(COUNTS, ())])
        if SOURCE in found and schema.get("enum") == (known.get(SOURCE) or None):
            _write(schema, found[SOURCE])
    choices = {} if before is None else _choices(before)
    for name, payload in _choices(document).items():
        schema = document["components"]["schemas"][name]
        written = {key: schema[key] for key in ("oneOf", "discriminator") if key in schema}
        if written == choices.get(name, {}):
            for key in written:
                del schema[key]
            schema.update(payload)


def _named(document: dict[str, Json], names: Names) -> list[tuple[At, dict[str, Json], dict[str, list[str]]]]:
    """The marked schemas with their places, and the names for each of their marks. Raises ContractError."""
    result = []
    for at, schema in marked_schemas(document):
        found = {}
        for mark in (COUNTS, SOURCE):
            if mark in schema:
                try:
                    listed = names.of(schema[mark], str(at[2]))
                except (AttributeError, KeyError):
                    where = json_path([*at, mark])
                    raise ContractError(f"{where}: there is no list of names {schema[mark]!r}") from None
                if listed is not None:
                    found[mark] = listed
        result.append((at, schema, found))
    return result


def _choices(document: dict[str, Json]) -> dict[str, Json]:
    """The members of each schema that is a choice of all payloads. Without any, as an empty choice accepts nothing."""
    if "x-webhooks" not in document:
        return {}
    mapping = payloads(document)
    one_of = [{"$ref": reference} for reference in dict.fromkeys(mapping.values())]
    payload = {"oneOf": one_of, "discriminator": {"propertyName": "type", "mapping": mapping}} if mapping else {}
    return {name: payload for name, schema in document["components"]["schemas"].items() if PAYLOADS in schema}


def _write(schema: dict[str, Json], enum: list[str]) -> None:
    """Put the enum right after its `x-enum-from`."""
    members = [(key, value) for key, value in schema.items() if key != "enum"]
    schema.clear()
    for key, value in members:
        schema[key] = value
        # A payload without events has no enum: an empty one is not valid.
        if key == SOURCE and (enum or value != "payload_events"):
            schema["enum"] = enum


def _count(schema: dict[str, Json], names: list[str]) -> None:
    """Add a required integer for each name."""
    parts = (("properties", dict), ("x-basis", dict), ("required", list))
    if not all(isinstance(schema.get(part, kind()), kind) for part, kind in parts):
        return  # an overlay has broken it: the OpenAPI validator says how
    for name in names:
        schema.setdefault("properties", {}).setdefault(name, {"type": "integer"})
        schema.setdefault("x-basis", {}).setdefault(name, "assumed")
        schema.setdefault("required", []).append(name)


def marked_schemas(document: dict[str, Json]) -> Iterator[tuple[At, dict[str, Json]]]:
    """Every schema of the document that takes names from a table, with its place; examples hold none."""
    components = {kind: document["components"].get(kind, {}) for kind in ("schemas", "parameters", "headers")}
    for at, node in nodes({"paths": document["paths"], "components": components}, ("example", "examples")):
        if isinstance(node, dict) and (SOURCE in node or COUNTS in node) and len(at) > 2:
            yield tuple(at), node
