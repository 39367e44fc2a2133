"""Fills in who raises each event (`x-emitted-by`), from the `x-emits` of operations and the moves of lifecycles."""

from collections.abc import Iterable, Iterator

from .source import Json

ALL = "*"
EMITTING = "x-emits"  # in the `by` of a move: every operation that may raise an event
AUTOMATIC = ("clock", "simulation")

Emitting = tuple[str, list[str]]
"""An operationId and the events that it names in `x-emits`, or `*` for all."""


class Emitters:
    """The generated lists of one document. One that an overlay has changed is not generated again."""

    def __init__(self, controls: Iterable[Emitting]) -> None:
        """`controls` are the operations of the control contract."""
        self._controls = list(controls)
        self._written: dict[str, list[str]] = {}

    def insert(self, document: dict[str, Json]) -> None:
        """Generate every list that no overlay has changed."""
        operations = [*emitting(_items(document.get("paths"))), *self._controls]
        moves = list(_moves(document))
        for event, post in _posts(document):
            if post.get("x-emitted-by") == self._written.get(event):
                automatic = {name for move in moves if event in _events(move) for name in _texts(move.get("by"))}
                by = [ident for ident, events in operations if event in events or ALL in events]
                by += [name for name in AUTOMATIC if name in automatic]
                post["x-emitted-by"] = self._written[event] = by
        for move in moves:
            if EMITTING in _texts(move.get("by")):
                move["by"] = [ident for ident, events in operations if events] + [
                    name for name in move["by"] if name != EMITTING
                ]


def emitting(items: Iterable[Json]) -> Iterator[Emitting]:
    """The operations of path items, with the events that each names."""
    for item in items:
        for operation in item.values() if isinstance(item, dict) else ():
            if isinstance(operation, dict) and "operationId" in operation:
                yield str(operation["operationId"]), _texts(operation.get("x-emits"))


def _posts(document: dict[str, Json]) -> Iterator[tuple[str, dict[str, Json]]]:
    items = document.get("x-webhooks")
    for event, item in items.items() if isinstance(items, dict) else ():
        if isinstance(item, dict) and isinstance(item.get("post"), dict):
            yield event, item["post"]


def _moves(document: dict[str, Json]) -> Iterator[dict[str, Json]]:
    components = document.get("components")
    for schema in _items(components.get("schemas") if isinstance(components, dict) else None):
        lifecycle = schema.get("x-lifecycle") if isinstance(schema, dict) else None
        moves = lifecycle.get("moves") if isinstance(lifecycle, dict) else None
        yield from (move for move in moves or () if isinstance(move, dict))


def _events(move: dict[str, Json]) -> list[str]:
    return [str(move.get("event")), *_texts(move.get("also"))]


def _items(node: Json) -> list[Json]:
    return list(node.values()) if isinstance(node, dict) else []


def _texts(node: Json) -> list[str]:
    return [str(value) for value in node] if isinstance(node, list) else []
