"""A part of a contract that is a contract itself: one operation, or those of a tag, with what they
refer to.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from ..contract.source import METHODS, Json, operations_in
from ..core.problem import NotFound
from ..core.text import did_you_mean

_DATA = frozenset(("example", "examples", "value", "default", "enum"))
"""Members whose value is no part of the contract's form."""
_KEPT = frozenset(("x-scopes", "x-emits", "x-codes"))
"""Extensions that callers read.

The others are for the server and for overlays, and may be longer than the rest.
"""


_PART = (
    "A part of the contract. Without a query, this address answers the whole contract, with what"
    " all operations share."
)


_HEAD = ("openapi", "info", "servers", "security")


class Slice(NamedTuple):
    """What a query asks for: an operation, or the operations of a tag."""

    operation: str | None
    tag: str | None

    @classmethod
    def of(cls, query: bytes) -> "Slice | None":
        """The slice that a query names, None for the whole contract."""
        asked = parse_qs(query.decode("latin-1"), keep_blank_values=True)
        if not {"operationId", "tag"} & asked.keys():
            return None
        return cls(asked.get("operationId", [None])[-1], asked.get("tag", [None])[-1])

    def check(self, data: Json) -> None:
        """Raises NotFound for a name that the contract does not have."""
        operations = [raw for _, _, raw in operations_in(data)]
        ids = [raw["operationId"] for raw in operations]
        tags = sorted({raw["tags"][0] for raw in operations})
        for kind, name, known in (("operation", self.operation, ids), ("tag", self.tag, tags)):
            if name is not None and name not in known:
                raise NotFound(
                    f"The contract has no {kind} {name[:200]}.",
                    advice=did_you_mean(name, known).strip() or "/llms.txt says how to find one.",
                    code="route_not_found",
                )

    def cut(self, data: Json) -> Json:
        """The part of a contract that this names."""
        paths: Json = {}
        for path, method, raw in operations_in(data):
            if raw["operationId"] == self.operation or raw["tags"][0] == self.tag:
                shared = {
                    key: value for key, value in data["paths"][path].items() if key not in METHODS
                }
                paths.setdefault(path, shared)[method] = raw
        paths = _plain(paths)
        tags = {raw["tags"][0] for _, _, raw in operations_in({"paths": paths})}
        head = {key: data[key] for key in _HEAD if key in data}
        head["info"] = data["info"] | {"description": _PART}
        return {
            **_plain(head),
            "tags": [tag for tag in data.get("tags", ()) if tag["name"] in tags],
            "paths": paths,
            "components": _components(data, paths),
        }


def _components(data: Json, paths: Json) -> Json:
    """What paths refer to, and what that refers to."""
    found: Json = {"securitySchemes": _plain(data["components"].get("securitySchemes", {}))}
    waiting, met = [*_references(paths)], set[str]()
    while waiting:
        reference = waiting.pop()
        if reference in met:
            continue
        met.add(reference)
        kind, name = reference.removeprefix("#/components/").split("/")[:2]
        part = _plain(data["components"][kind][name])
        found.setdefault(kind, {})[name] = part
        waiting += _references(part)
    return {
        kind: {name: found[kind][name] for name in parts if name in found[kind]}
        for kind, parts in data["components"].items()
        if kind in found
    }


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, str) and node.startswith("#/components/"):
        yield node
    for value in (
        node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    ):
        yield from _references(value)


def _plain(node: Any) -> Any:
    """A part without extensions, and without the links of answers, which may lead to what is
    left out.
    """
    if isinstance(node, list):
        return [_plain(value) for value in node]
    if not isinstance(node, dict):
        return node
    is_answer = isinstance(node.get("description"), str)  # else it may be the members of a schema
    found = {}
    for key, value in node.items():
        if key in _DATA:
            found[key] = value
        elif not (is_answer and key == "links") and (not key.startswith("x-") or key in _KEPT):
            found[key] = _plain(value)
    return found
