"""The parts of a contract that are generated from its extension tables.

| Mark | What is generated | From |
|---|---|---|
| `x-webhooks` | `x-emitted-by` of each event | `x-emits` of operations, `by` of moves |
| `x-enum-from` | the enum | events, scopes, operations, states |
| `x-counts-of` | an integer member for each name | the same |
| `x-one-of-from` | a choice of all webhook payloads | `x-webhooks` |

The tables have the shapes of `extensions.yaml`: those of overlays are checked before.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from .source import Json, error_at, nodes

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
        self._webhooks = document.get("x-webhooks", {})
        posts = {name: item["post"]["requestBody"]["content"] for name, item in self._webhooks.items()}
        bodies = {name: content["application/json"]["schema"] for name, content in posts.items()}
        self.payloads = {name: body["$ref"] for name, body in bodies.items() if "$ref" in body}  # not written in place
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

    def of(self, at: At, mark: str, source: Json) -> list[str] | None:
        """The names for a mark of the schema at a place; None where an overlay has removed their lifecycle.

        Raises ContractError for an unknown source.
        """
        if source == "payload_events":
            reference = f"#/components/schemas/{at[2]}"
            return [name for name, payload in self.payloads.items() if payload == reference]
        is_known = isinstance(source, str) and (source in self._lists or source.partition(":")[2] in self._stateless)
        if not is_known:
            raise error_at([*at, mark], f"there is no list of names {source!r}")
        found = self._lists.get(source)
        return None if found is None else [*found]  # an overlay may change it in one place only

    def emitted(self, operation: str, named: list[str]) -> list[str]:
        """The events of an operation: those of `named` that exist, then those whose `x-emitted-by` lists it."""
        if ALL in named:
            return list(self.events)
        known = [name for name in named if name in self._webhooks]
        emitted_by = ((name, item["post"]["x-emitted-by"]) for name, item in self._webhooks.items())
        return known + [name for name, by in emitted_by if operation in by and name not in known]


class Part(NamedTuple):
    """An object of the document, its generated members, and the names for which it has a member with a count."""

    at: At
    node: dict[str, Json]
    members: dict[str, Json]
    counted: list[str]


def generate(
    document: dict[str, Json], names: Names, controls: Sequence[Emitting], before: Iterable[Part] = ()
) -> None:
    """Generate all parts. `controls` are operations of the control contract. Raises ContractError.

    Of parts that the document had `before`, what an overlay has changed stays.
    """
    raising = [ident for ident, events in _operations(document, controls) if events]
    for move in _moves(document):
        if EMITTING in move.get("by", ()):
            move["by"] = [*raising, *(name for name in move["by"] if name != EMITTING)]
    earlier = {part.at: part for part in before}
    for part in [*parts(document, names, controls)]:
        known = earlier.get(part.at) or Part(part.at, {}, {}, [])
        keys = known.members.keys() | part.members.keys()
        if {key: part.node[key] for key in keys if key in part.node} == known.members:
            _write(part.node, keys, part.members)
        elif "x-emitted-by" in keys - part.node.keys():
            raise error_at([*part.at, "post", "x-emitted-by"], "every event tells what raises it: keep or change it")
        _count(part.node, [name for name in part.counted if name not in known.counted])


def parts(document: dict[str, Json], names: Names, controls: Sequence[Emitting]) -> Iterator[Part]:
    operations, moves, mapping = _operations(document, controls), _moves(document), names.payloads
    for event, item in document.get("x-webhooks", {}).items():
        raising = [move for move in moves if event in (move.get("event"), *move.get("also", ()))]
        automatic = {name for move in raising for name in move.get("by", ())}
        by = [ident for ident, events in operations if event in events or ALL in events]
        by += [name for name in AUTOMATIC if name in automatic]
        yield Part(("x-webhooks", event), item["post"], {"x-emitted-by": by}, [])
    for at, schema in marked_schemas(document):
        found = {mark: names.of(at, mark, schema[mark]) for mark in (COUNTS, SOURCE) if mark in schema}
        enum = found.get(SOURCE)
        # A payload without events has no enum: an empty one is not valid.
        members = {} if enum is None or (not enum and schema[SOURCE] == "payload_events") else {"enum": enum}
        if SOURCE not in found or enum is not None:
            yield Part(at, schema, members, found.get(COUNTS) or [])
    one_of = [{"$ref": reference} for reference in dict.fromkeys(mapping.values())]
    # Without any payload there are none, as an empty choice accepts nothing.
    payload = {"oneOf": one_of, "discriminator": {"propertyName": "type", "mapping": mapping}} if mapping else {}
    for name, schema in document["components"].get("schemas", {}).items() if "x-webhooks" in document else ():
        if PAYLOADS in schema:
            yield Part(("components", "schemas", name), schema, payload, [])


def _operations(document: dict[str, Json], controls: Sequence[Emitting]) -> list[Emitting]:
    return [*emitting(document["paths"].values()), *controls]


def _moves(document: dict[str, Json]) -> list[Json]:
    schemas = document["components"].get("schemas", {}).values()
    return [move for schema in schemas for move in schema.get("x-lifecycle", {}).get("moves", ())]


def _write(node: dict[str, Json], gone: Collection[str], made: dict[str, Json]) -> None:
    """Replace members of an object. An enum comes right after its `x-enum-from`."""
    others = [(key, value) for key, value in node.items() if key not in gone]
    node.clear()
    for key, value in others:
        node[key] = value
        if key == SOURCE:
            node.update(made)
    node.update(made)


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
