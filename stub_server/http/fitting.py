"""Checks that a handler fits its operation in a contract with overlays, and what it needs of requests."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from ..contract.document import Operation
from ..contract.names import SOURCE
from ..contract.source import ContractError, Json, json_path

_KEPT = ("type", "required", "enum")
_DEEPEST = 12


class Takes(NamedTuple):
    """What a handler is called with: number of path ids, query, body; `body_needed` if the body cannot be None.

    `anything` is a handler with any arguments: the one of an operation without behaviour.
    """

    ids: int = 0
    query: bool = False
    body: bool = False
    body_needed: bool = False
    anything: bool = False


def takes_of(handler: Callable[..., Any]) -> Takes:
    """The parameters in a handler's signature."""
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
    where = f"{json_path(['paths', operation.path, operation.method.lower()])}: {operation.id}"
    ids = operation.path.count("{")
    if not takes.anything and ids != takes.ids:
        raise ContractError(f"{where} works with {takes.ids} ids in its path, and here the path has {ids}")
    if takes.body_needed and operation.body is None:
        raise ContractError(f"{where} cannot do without a request body, and here it has none")


def skeleton(node: Json, resolve: Callable[[Json], Json], depth: int = 0) -> Json:
    """What a handler relies on in a request: required members, their types and their enums, as a schema."""
    node = resolve(node)
    if not isinstance(node, dict) or depth > _DEEPEST:
        return {}
    kept: dict[str, Json] = {name: node[name] for name in _KEPT if name in node}
    # Handlers store names of events and scopes as they come; only event types and states are looked up, and must exist.
    source = str(node.get(SOURCE, "event_types"))
    if source != "event_types" and ":" not in source:
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
