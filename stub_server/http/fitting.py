"""Whether a handler fits the operation that a corrected contract binds to it, and what it cannot do without."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from ..contract.document import Operation
from ..contract.names import SOURCE
from ..contract.source import ContractError, Json

_KEPT = ("type", "required", "enum")
_DEEPEST = 12


class Takes(NamedTuple):
    """What a handler is called with: so many ids of the path, a query, a body; `body_needed` where it cannot be None.

    `anything` is a handler that takes whatever comes: that of an operation without behaviour.
    """

    ids: int = 0
    query: bool = False
    body: bool = False
    body_needed: bool = False
    anything: bool = False


def takes_of(handler: Callable[..., Any]) -> Takes:
    """What a handler's signature says."""
    parameters = list(inspect.signature(handler).parameters.values())
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return Takes(anything=True)
    named = {parameter.name: parameter for parameter in parameters[1:]}
    body = named.pop("body", None)
    query = named.pop("query", None)
    return Takes(
        len(named), query is not None, body is not None, body is not None and "None" not in str(body.annotation)
    )


def check_fit(operation: Operation, handler: Callable[..., Any]) -> None:
    """Raises ContractError for an operation that its handler can never serve."""
    takes = takes_of(handler)
    where = f"{operation.method} {operation.path}: {operation.id}"
    ids = operation.path.count("{")
    if not takes.anything and ids != takes.ids:
        raise ContractError(f"{where} works with {takes.ids} ids in its path, and here the path has {ids}")
    if takes.body_needed and operation.body is None:
        raise ContractError(f"{where} cannot do without a request body, and here it has none")


def skeleton(node: Json, resolve: Callable[[Json], Json], depth: int = 0) -> Json:
    """What a handler relies on in a request: members that must be there, their types and the words that it knows."""
    node = resolve(node)
    if not isinstance(node, dict) or depth > _DEEPEST:
        return {}
    kept: dict[str, Json] = {name: node[name] for name in _KEPT if name in node}
    # A handler keeps names of events and scopes as they are; only a type it looks up must be one that there is.
    if node.get(SOURCE, "event_types") != "event_types":
        kept.pop("enum", None)
    if node.get("nullable") is True and isinstance(kept.get("type"), str):
        kept["type"] = [kept["type"], "null"]
        if "enum" in kept:
            kept["enum"] = [*kept["enum"], None]
    properties = node.get("properties")
    if isinstance(properties, dict):
        kept["properties"] = {name: skeleton(member, resolve, depth + 1) for name, member in properties.items()}
    for name in ("items", "additionalProperties"):
        if isinstance(node.get(name), dict):
            kept[name] = skeleton(node[name], resolve, depth + 1)
    for name in ("allOf", "anyOf", "oneOf"):
        if name in node:
            kept[name] = [skeleton(member, resolve, depth + 1) for member in node[name]]
    return kept
