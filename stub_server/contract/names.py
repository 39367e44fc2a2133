"""Fills the enums marked `x-enum-from` with names of events, scopes, operations or states.

Events are described in `x-webhooks`, scopes in `x-scopes`, states in `x-lifecycle`; every other list of their names is
generated from these. A schema marked `x-counts-of` gets an integer member for each name.
"""

from collections.abc import Iterator
from typing import NamedTuple

from .emitters import ALL
from .payloads import payload_reference
from .source import ContractError, Json, json_path

SOURCE = "x-enum-from"
COUNTS = "x-counts-of"
Place = tuple[str | int, ...]


class _Scope(NamedTuple):
    name: str
    resource: str
    assignable: bool


class Names:
    """The names that a document gives its events and scopes, in its order."""

    def __init__(self, document: dict[str, Json]) -> None:
        """Raises ContractError for a table of another type."""
        items = document.get("x-webhooks", {})
        if not isinstance(items, dict):
            raise ContractError("$['x-webhooks']: must be a map of event types")
        self.events = tuple(items)
        self._operations = _operations(document.get("paths"))
        self._payloads = {name: _payload(item) for name, item in items.items()}
        self._emitted_by = {name: _emitted_by(item) for name, item in items.items()}
        scopes = document.get("x-scopes", [])
        if not isinstance(scopes, list):
            raise ContractError("$['x-scopes']: must be a list of scopes")
        self._scopes = [_scope(raw, number) for number, raw in enumerate(scopes)]
        self._schemas = _schemas(document)
        self.lifecycles = {
            name: schema["x-lifecycle"] for name, schema in self._schemas.items() if "x-lifecycle" in schema
        }

    def of(self, source: str, component: str) -> list[str] | None:
        """The names for an `x-enum-from` in a component; None where an overlay has broken their table.

        Raises AttributeError, KeyError or TypeError for an unknown source.
        """
        kind, _, resource = source.partition(":")
        if resource:
            lifecycle = self._schemas[resource].get("x-lifecycle")
            return _of_states(lifecycle, kind) if _is_usable(lifecycle) else None
        return {
            "event_types": self._event_types,
            "event_resources": self._event_resources,
            "event_patterns": self._event_patterns,
            "payload_events": lambda: [name for name, schema in self._payloads.items() if schema == component],
            "scopes": lambda: [scope.name for scope in self._scopes],
            "assignable_scopes": lambda: [scope.name for scope in self._scopes if scope.assignable],
            "scope_resources": self._scope_resources,
            "scope_patterns": self.scope_patterns,
            "operations": self._operation_ids,
        }[source]()

    def emitted(self, operation: str, said: list[str]) -> list[str]:
        """The events of an operation: those of `said` that exist, then those whose `x-emitted-by` lists it."""
        if ALL in said:
            return list(self.events)
        kept = [name for name in said if name in self._emitted_by]
        return kept + [name for name, by in self._emitted_by.items() if operation in by and name not in kept]

    def _operation_ids(self) -> list[str]:
        return self._operations

    def _event_types(self) -> list[str]:
        return list(self.events)

    def _event_resources(self) -> list[str]:
        return list(dict.fromkeys(name.partition(".")[0] for name in self.events))

    def _event_patterns(self) -> list[str]:
        return ["*", *(f"{resource}.*" for resource in self._event_resources()), *self.events]

    def _scope_resources(self) -> list[str]:
        return list(dict.fromkeys(scope.resource for scope in self._scopes))

    def scope_patterns(self) -> list[str]:
        """What a token may be given: every scope, every scope of a resource, or all."""
        patterns = ["*"]
        for resource in self._scope_resources():
            patterns += [scope.name for scope in self._scopes if scope.resource == resource]
            patterns.append(f"{resource}:*")
        return patterns


def _is_usable(lifecycle: Json) -> bool:
    """Whether a lifecycle has the shape of one; `extensions.check_shapes` says what is wrong with another."""
    shapes = (("states", list), ("moves", list), ("sets", dict))
    is_whole = isinstance(lifecycle, dict) and all(
        isinstance(lifecycle.get(name, kind()), kind) for name, kind in shapes
    )
    return is_whole and all(isinstance(move, dict) and {"from", "to"} <= move.keys() for move in lifecycle["moves"])


def _of_states(lifecycle: Json, kind: str) -> list[str]:
    """The states of a lifecycle, those that it begins in, the controls of its moves, or a named set of its states."""
    if kind == "states":
        return list(lifecycle["states"])
    if kind == "initial":
        return list(dict.fromkeys(move["to"] for move in lifecycle["moves"] if move["from"] == "new"))
    if kind == "moves":
        return list(dict.fromkeys(move["control"] for move in lifecycle["moves"] if "control" in move))
    return list(lifecycle["sets"][kind])


class Enums:
    """The generated enums of one document. One that an overlay has changed is not generated again."""

    def __init__(self) -> None:
        self._names: Names | None = None
        self._written: dict[Place, list[str] | None] = {}
        self._met: set[Place] = set()

    def insert(self, document: dict[str, Json], names: Names) -> None:
        """Generate every enum that no overlay has changed. Raises ContractError."""
        for place, schema in list(_places(document)):
            if COUNTS in schema:
                counted, earlier = self._named(place, schema, COUNTS, names)
                _count(schema, [name for name in counted or () if name not in (earlier or ())])
            if SOURCE not in schema:
                continue
            enum, before = self._named(place, schema, SOURCE, names)
            if enum is None:
                continue
            is_ours = self._written[place] == schema.get("enum") if place in self._written else False
            is_new = place not in self._met and schema.get("enum") in (None, before)
            self._met.add(place)
            if is_ours or is_new:
                # A payload without events has no enum: an empty one is not valid.
                self._written[place] = enum or None if schema[SOURCE] == "payload_events" else enum
                _write(schema, self._written[place])
            else:
                self._written.pop(place, None)
        self._names = names

    def _named(
        self, place: Place, schema: dict[str, Json], key: str, names: Names
    ) -> tuple[list[str] | None, list[str] | None]:
        """The names that a schema asks for, and what they were before the newest overlay. Raises ContractError."""
        source, component = schema[key], str(place[2])
        try:
            return names.of(source, component), self._names.of(source, component) if self._names else None
        except (AttributeError, KeyError, TypeError):
            raise ContractError(f"{json_path([*place, key])}: there is no list {source!r} to fold in") from None


def check(document: dict[str, Json], names: Names) -> None:
    """Check that every enum of event types, which an overlay may have shortened, names events that exist.

    Raises ContractError with the JSONPath.
    """
    for place, schema in _places(document):
        unknown = {str(value) for value in schema.get("enum", ()) if value is not None} - set(names.events)
        if schema.get(SOURCE) == "event_types" and unknown:
            raise ContractError(
                f"{json_path([*place, 'enum'])}: {min(unknown)} is no event of this contract: "
                "take it out, or describe the event in x-webhooks"
            )


def _write(schema: dict[str, Json], enum: list[str] | None) -> None:
    """Put the enum right after its `x-enum-from`."""
    members = [(key, value) for key, value in schema.items() if key != "enum"]
    schema.clear()
    for key, value in members:
        schema[key] = value
        if key == SOURCE and enum is not None:
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


def _schemas(document: dict[str, Json]) -> dict[str, dict[str, Json]]:
    """The schemas among a document's components that an overlay has left in order."""
    components = document.get("components")
    schemas = components.get("schemas") if isinstance(components, dict) else None
    found = schemas.items() if isinstance(schemas, dict) else ()
    return {name: schema for name, schema in found if isinstance(schema, dict)}


def _places(document: dict[str, Json]) -> Iterator[tuple[Place, dict[str, Json]]]:
    """Every schema of the document that takes names from a table."""
    components = document.get("components")
    pending: list[tuple[Place, Json]] = [(("paths",), document.get("paths", {}))]
    if isinstance(components, dict):
        pending += [(("components", kind), components.get(kind, {})) for kind in ("schemas", "parameters", "headers")]
    while pending:
        at, node = pending.pop()
        if isinstance(node, dict):
            if (SOURCE in node or COUNTS in node) and len(at) > 2:
                yield at, node
            members: list[tuple[str | int, Json]] = [*node.items()]
        elif isinstance(node, list):
            members = [*enumerate(node)]
        else:
            continue
        pending += [((*at, step), value) for step, value in members if _may_hold(step, value)]


def _may_hold(key: str | int, value: Json) -> bool:
    """Whether a member can contain schemas; examples do not."""
    return isinstance(value, (dict, list)) and key not in ("example", "examples")


def _operations(paths: Json) -> list[str]:
    """The operationIds of a document, in its order."""
    items = [item for item in paths.values() if isinstance(item, dict)] if isinstance(paths, dict) else []
    return [
        str(operation["operationId"])
        for item in items
        for operation in item.values()
        if isinstance(operation, dict) and "operationId" in operation
    ]


def _payload(item: Json) -> str | None:
    """The component that describes the payload of an event."""
    reference = payload_reference(item)
    return None if reference is None else reference.rpartition("/")[2]


def _emitted_by(item: Json) -> list[str]:
    """The operations in an event's `x-emitted-by`."""
    try:
        return list(item["post"]["x-emitted-by"])
    except (KeyError, TypeError):
        return []


def _scope(raw: Json, number: int) -> _Scope:
    try:
        return _Scope(str(raw["name"]), str(raw["resource"]), raw["assignable"] is True)
    except (KeyError, TypeError):
        where = json_path(["x-scopes", number])
        raise ContractError(f"{where}: a scope needs name, resource, access, description and assignable") from None
