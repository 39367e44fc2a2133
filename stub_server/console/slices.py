"""A part of a contract that is a contract itself: one operation, or those of a tag, with what they
refer to.
"""

import re
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import orjson

from ..contract.source import Json, operations_in
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
_COMPONENT = re.compile(r'"#/components/(\w+)/([^/"]+)').findall


class Slice(NamedTuple):
    """What a query asks for: an operation, or else the operations of a tag.

    One of both, so that strangers can ask for few different ones.
    """

    name: str

    @classmethod
    def of(cls, query: bytes, data: Json) -> "Slice | None":
        """The slice of a contract that a query names, None for all of it. Raises NotFound."""
        asked = parse_qs(query.decode("latin-1"), keep_blank_values=True)
        names = [asked[name][-1] for name in ("operationId", "tag") if name in asked]
        known: dict[str, None] = {}
        for _, _, raw in operations_in(data):
            known |= {raw["operationId"]: None, raw["tags"][0]: None}
        for name in names:
            if name not in known:
                raise NotFound(
                    f"The contract has no operation or tag {name[:200]}.",
                    advice=did_you_mean(name, [*known]).strip()
                    or "/llms.txt says how to find one.",
                    code="route_not_found",
                )
        return cls(names[0]) if names else None

    def has(self, operation: Json) -> bool:
        """Whether an operation belongs to it."""
        return self.name in (operation["operationId"], operation["tags"][0])

    def cut(self, data: Json) -> Json:
        """The part of a contract that this names."""
        paths: Json = {}
        tags = set[str]()
        for path, method, raw in operations_in(data):
            if self.has(raw):
                paths.setdefault(path, {})[method] = _plain(raw)
                tags.add(raw["tags"][0])
        info = _plain(data["info"]) | {"description": _PART}
        schemes = _plain(data["components"].get("securitySchemes", {}))
        return {
            **{name: data[name] for name in ("openapi", "servers", "security") if name in data},
            "info": info,
            "tags": [tag for tag in data.get("tags", ()) if tag["name"] in tags],
            "paths": paths,
            "components": {"securitySchemes": schemes} | _components(data, paths),
        }


def _components(data: Json, paths: Json) -> Json:
    """What paths refer to, and what that refers to."""
    found: Json = {}
    waiting = [paths]
    while waiting:
        for kind, name in _COMPONENT(orjson.dumps(waiting.pop()).decode()):
            known = found.setdefault(kind, {})
            if name not in known:
                known[name] = _plain(data["components"][kind][name])
                waiting.append(known[name])
    return found


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
