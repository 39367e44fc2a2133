"""The parts of a contract that are generated from its extension tables, and with path examples when it is served.

| Mark | What is generated | From |
|---|---|---|
| `x-webhooks` | `x-emitted-by` of each event | `x-emits` of operations, `by` of moves |
| `x-enum-from` | the enum | events, scopes, operations, states |
| `x-counts-of` | an integer member for each name | the same |
| `x-one-of-from` | a choice of all webhook payloads | `x-webhooks` |

It runs before the document is validated, so it skips a table that an overlay has broken, which a check rejects later.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from .source import METHODS, ContractError, Json, json_path

ALL = "*"
EMITTING = "x-emits"  # in the `by` of a move: every operation that may raise an event
AUTOMATIC = ("clock", "simulation")
SOURCE, COUNTS, PAYLOADS = "x-enum-from", "x-counts-of", "x-one-of-from"
Emitting = tuple[str, list[str]]
"""An operationId and the events that it names in `x-emits`, or `*` for all."""
At = tuple[str | int, ...]
"""The place of a schema."""


def inside(node: Json, *steps: str) -> dict[str, Json]:
    """The object at these keys; empty where there is none."""
    for step in steps:
        node = node.get(step) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


def emitting(items: Iterable[Json]) -> Iterator[Emitting]:
    """The operations of path items, with the events that each names."""
    for item in items:
        for operation in inside(item).values():
            if "operationId" in inside(operation):
                yield str(operation["operationId"]), _texts(operation.get("x-emits"))


def payload_reference(item: Json) -> str | None:
    """The `$ref` of an event's payload, None if the schema is written in place."""
    reference = inside(item, "post", "requestBody", "content", "application/json", "schema").get("$ref")
    return reference if isinstance(reference, str) else None


class Names:
    """The names that a document gives its events, scopes, operations and states, in its order."""

    def __init__(self, document: dict[str, Json]) -> None:
        """Raises ContractError for a table of another type."""
        items, scopes = document.get("x-webhooks", {}), document.get("x-scopes", [])
        if not isinstance(items, dict):
            raise ContractError("$['x-webhooks']: must be a map of event types")
        if not isinstance(scopes, list):
            raise ContractError("$['x-scopes']: must be a list of scopes")
        for number, scope in enumerate(scopes):
            if not inside(scope).keys() >= {"name", "resource", "assignable"}:
                where = json_path(["x-scopes", number])
                raise ContractError(f"{where}: a scope needs name, resource, access, description and assignable")
        self.events = tuple(items)
        self._emitted_by = {name: _texts(inside(item, "post").get("x-emitted-by")) for name, item in items.items()}
        self._payloads = {name: (payload_reference(item) or "").rpartition("/")[2] for name, item in items.items()}
        self._schemas = {k: v for k, v in inside(document, "components", "schemas").items() if isinstance(v, dict)}
        self.lifecycles = {name: v["x-lifecycle"] for name, v in self._schemas.items() if "x-lifecycle" in v}
        resources = list(dict.fromkeys(name.partition(".")[0] for name in items))
        owners = list(dict.fromkeys(str(scope["resource"]) for scope in scopes))
        self.scope_patterns = ["*"]  # what a token may be given: every scope, every scope of a resource, or all
        for owner in owners:
            self.scope_patterns += [str(scope["name"]) for scope in scopes if scope["resource"] == owner]
            self.scope_patterns.append(f"{owner}:*")
        self._lists = {
            "event_types": list(items),
            "event_resources": resources,
            "event_patterns": ["*", *(f"{resource}.*" for resource in resources), *items],
            "scopes": [str(scope["name"]) for scope in scopes],
            "assignable_scopes": [str(scope["name"]) for scope in scopes if scope["assignable"] is True],
            "scope_resources": owners,
            "scope_patterns": self.scope_patterns,
            "operations": [ident for ident, _ in emitting(inside(document, "paths").values())],
        }

    def of(self, source: str, component: str) -> list[str] | None:
        """The names for an `x-enum-from` in a component; None where an overlay has broken their table.

        Raises AttributeError, KeyError or TypeError for an unknown source.
        """
        kind, _, resource = source.partition(":")
        if resource:
            lifecycle = self._schemas[resource].get("x-lifecycle")
            return _of_states(lifecycle, kind) if _is_usable(lifecycle) else None
        if source == "payload_events":
            return [name for name, schema in self._payloads.items() if schema == component]
        return list(self._lists[source])

    def emitted(self, operation: str, named: list[str]) -> list[str]:
        """The events of an operation: those of `named` that exist, then those whose `x-emitted-by` lists it."""
        if ALL in named:
            return list(self.events)
        known = [name for name in named if name in self._emitted_by]
        return known + [name for name, by in self._emitted_by.items() if operation in by and name not in known]


def _is_usable(lifecycle: Json) -> bool:
    """Whether a lifecycle has the shape of one."""
    shapes = (("states", list), ("moves", list), ("sets", dict))
    is_whole = isinstance(lifecycle, dict) and all(
        isinstance(lifecycle.get(name, kind()), kind) for name, kind in shapes
    )
    return is_whole and all(inside(move).keys() >= {"from", "to"} for move in lifecycle["moves"])


def _of_states(lifecycle: Json, kind: str) -> list[str]:
    """The states of a lifecycle, those that it begins in, the controls of its moves, or a named set of its states."""
    if kind == "states":
        return list(lifecycle["states"])
    if kind == "initial":
        return list(dict.fromkeys(move["to"] for move in lifecycle["moves"] if move["from"] == "new"))
    if kind == "moves":
        return list(dict.fromkeys(move["control"] for move in lifecycle["moves"] if "control" in move))
    return list(lifecycle["sets"][kind])


class Generator:
    """Generates the parts of one document, again after each overlay. A part that an overlay has changed stays."""

    def __init__(self, controls: Iterable[Emitting]) -> None:
        """`controls` are the operations of the control contract."""
        self._controls = list(controls)
        self._emitters: dict[str, list[str]] = {}
        self._enums: dict[At, list[str] | None] = {}
        self._choices: dict[str, Json] = {}
        self._names: Names | None = None

    def insert_emitters(self, document: dict[str, Json]) -> None:
        """Generate `x-emitted-by` of the events and `by` of the moves."""
        operations = [*emitting(inside(document, "paths").values()), *self._controls]
        schemas = inside(document, "components", "schemas").values()
        lifecycles = (inside(schema, "x-lifecycle").get("moves") for schema in schemas)
        moves = [move for found in lifecycles if isinstance(found, list) for move in found if isinstance(move, dict)]
        for event, item in inside(document, "x-webhooks").items():
            post = inside(item, "post")
            if post and post.get("x-emitted-by") == self._emitters.get(event):
                raising = [move for move in moves if event in (move.get("event"), *_texts(move.get("also")))]
                automatic = {name for move in raising for name in _texts(move.get("by"))}
                by = [ident for ident, events in operations if event in events or ALL in events]
                by += [name for name in AUTOMATIC if name in automatic]
                post["x-emitted-by"] = self._emitters[event] = by
        for move in moves:
            if EMITTING in _texts(move.get("by")):
                move["by"] = [ident for ident, events in operations if events] + [
                    name for name in move["by"] if name != EMITTING
                ]

    def insert_names(self, document: dict[str, Json], names: Names) -> None:
        """Generate enums, counts and choices of payloads. Raises ContractError."""
        for place, schema in list(marked_schemas(document)):
            if COUNTS in schema:
                counted, earlier = self._named(place, COUNTS, schema[COUNTS], names)
                _count(schema, [name for name in counted or () if name not in (earlier or ())])
            if SOURCE in schema:
                enum, before = self._named(place, SOURCE, schema[SOURCE], names)
                expected = (self._enums[place],) if place in self._enums else (None, before)
                if enum is not None and schema.get("enum") in expected:
                    # A payload without events has no enum: an empty one is not valid.
                    self._enums[place] = enum or None if schema[SOURCE] == "payload_events" else enum
                    _write(schema, self._enums[place])
        self._names = names
        items = inside(document, "x-webhooks").items()
        mapping = {event: reference for event, item in items if (reference := payload_reference(item)) is not None}
        for name, schema in inside(document, "components", "schemas").items():
            written = {key: schema[key] for key in ("oneOf", "discriminator") if key in inside(schema)}
            if PAYLOADS in inside(schema) and "x-webhooks" in document and written == self._choices.get(name, {}):
                one_of = [{"$ref": reference} for reference in dict.fromkeys(mapping.values())]
                one_of_all: Json = {"oneOf": one_of, "discriminator": {"propertyName": "type", "mapping": mapping}}
                self._choices[name] = one_of_all if mapping else {}
                schema.update(self._choices[name])
                for key in () if mapping else written:  # an empty choice would accept nothing
                    del schema[key]

    def _named(self, place: At, key: str, source: str, names: Names) -> tuple[list[str] | None, list[str] | None]:
        """The names that a schema asks for, and what they were before the newest overlay. Raises ContractError."""
        component = str(place[2])
        try:
            return names.of(source, component), self._names.of(source, component) if self._names else None
        except (AttributeError, KeyError, TypeError):
            raise ContractError(f"{json_path([*place, key])}: there is no list of names {source!r}") from None


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


def marked_schemas(document: dict[str, Json]) -> Iterator[tuple[At, dict[str, Json]]]:
    """Every schema of the document that takes names from a table, with its place; examples hold none."""
    pending: list[tuple[At, Json]] = [(("paths",), document.get("paths"))]
    for kind in ("schemas", "parameters", "headers"):
        pending.append((("components", kind), inside(document, "components").get(kind)))
    while pending:
        at, node = pending.pop()
        members: Iterable[tuple[str | int, Json]] = ()
        if isinstance(node, dict):
            members = node.items()
            if (SOURCE in node or COUNTS in node) and len(at) > 2:
                yield at, node
        elif isinstance(node, list):
            members = enumerate(node)
        pending += [
            ((*at, step), value)
            for step, value in members
            if isinstance(value, (dict, list)) and step not in ("example", "examples")
        ]


def _texts(node: Json) -> list[str]:
    return [str(value) for value in node] if isinstance(node, list) else []


def with_path_examples(document: dict[str, Json]) -> dict[str, Json]:
    """The document with path parameters that have an example for each example of the request or the answer.

    Tools that send examples pair those of one name. The parameter's file holds one `example`, whatever the operation,
    so shared parameters are written out.
    """
    shared = inside(document, "components", "parameters")
    written_out = {name for name, parameter in shared.items() if _has_one_example(parameter)}
    if not written_out:
        return document
    paths = {
        path: {key: _with_examples(value, shared) if key in METHODS else value for key, value in item.items()}
        for path, item in document["paths"].items()
    }
    others = {name: parameter for name, parameter in shared.items() if name not in written_out}
    return {**document, "paths": paths, "components": {**document["components"], "parameters": others}}


def _with_examples(operation: dict[str, Any], shared: dict[str, Json]) -> dict[str, Any]:
    if "parameters" not in operation:
        return operation
    answers = [answer for status, answer in operation["responses"].items() if str(status).startswith("2")]
    names = _examples(operation.get("requestBody", {})) or [name for answer in answers for name in _examples(answer)]
    parameters = []
    for parameter in operation["parameters"]:
        whole = shared.get(str(parameter.get("$ref", "")).rpartition("/")[2], parameter)
        if _has_one_example(whole):
            parameter = whole
            if names:
                parameter = {key: value for key, value in whole.items() if key != "example"}
                parameter["examples"] = {name: {"value": whole["example"]} for name in names}
        parameters.append(parameter)
    return {**operation, "parameters": parameters}


def _has_one_example(parameter: dict[str, Json]) -> bool:
    return parameter.get("in") == "path" and "example" in parameter


def _examples(message: dict[str, Json]) -> list[str]:
    return [name for media in message.get("content", {}).values() for name in media.get("examples", {})]
