"""Forms by the contract: the filters of a list, and the call that a form stands for."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from flask import abort, g, request

from ..contract.source import JsonObject
from .client import Refused
from .filters import from_zone, read_json
from .site import contracts

_PAGING = frozenset(("page", "limit", "sort"))


class Field(NamedTuple):
    """One field, by the schema of its value."""

    name: str
    schema: JsonObject
    value: str = ""


def _filters(ident: str, first: Sequence[str], without: Collection[str]) -> list[Field]:
    """The filters of a list, with the values of this page's query; those named in `first`
    come first.
    """
    document = contracts().home(ident)[1]
    found = []
    for raw in map(document.resolve, document.operations[ident].raw.get("parameters", ())):
        name, schema = raw["name"], document.resolve(raw["schema"])
        if raw["in"] == "query" and name not in (*_PAGING, *without):
            one = {**document.resolve(schema.get("items", schema))}
            one["description"] = raw.get("description", "")
            found.append(Field(name, one, request.args.get(name, "")))
    return sorted(
        found, key=lambda each: first.index(each.name) if each.name in first else len(first)
    )


def listed(
    path: str,
    ident: str,
    limit: int,
    *,
    first: Sequence[str] = (),
    without: Collection[str] = (),
    **nothing: Any,
) -> JsonObject:
    """What a template shows of a list with its filters, by the id of its operation; those of
    `first` come first.

    A filter that is refused is its `problem`, beside `nothing`.
    """
    filters = _filters(ident, first, without)
    found: JsonObject = {}
    problem = None
    try:
        query = {each.name: from_zone(each.value) for each in filters}
        paged = {name: request.args.get(name, "") for name in ("page", "sort")}
        found = g.client.get(path, query | paged | {"limit": limit})
    except Refused as refused:
        if refused.status != 422:
            raise
        problem = refused
        found = nothing | {"pagination": {"total": 0, "total_pages": 0}}
    is_filtered = any(each.value for each in filters)
    return found | {"filters": filters, "is_filtered": is_filtered, "problem": problem}


def filled(ident: str) -> tuple[str, str, JsonObject | None]:
    """The call that a form stands for: its fields are parameters of an operation, and members of
    its body. One that only reads is none: its answer may have no end.
    """
    operation = contracts().operation(ident)
    if operation is None or operation.method == "GET":
        abort(404)
    path, query = contracts().home(ident)[0] + operation.path, dict[str, str]()
    for parameter in operation.parameters:
        name = parameter.name
        if parameter.place == "path":
            path = path.replace(f"{{{name}}}", quote(request.form[name], safe=""))
        elif parameter.place == "query" and name in request.form:
            query[name] = request.form[name]
    return operation.method, f"{path}?{urlencode(query)}", members(ident) or None


def members(ident: str) -> JsonObject:
    """The members of an operation's body that a form has. What is left empty is left out, or null
    where that is a value.

    What does not have the type of the contract is refused by the control that gets it.
    """
    document, found = contracts().home(ident)[1], JsonObject()
    body = document.resolve(document.operations[ident].body or {})
    for name, member in body.get("properties", {}).items():
        texts, schema = request.form.getlist(name), document.resolve(member)
        if not texts:
            continue
        # a switch that is off is the hidden field before it
        text = texts[-1].strip()
        if schema.get("type") == "array":
            found[name] = texts
        elif text:
            found[name] = _read(text, schema)
        elif schema.get("nullable"):
            found[name] = None
    return found


def _read(text: str, schema: JsonObject) -> Any:
    if schema.get("format") == "date-time":
        return from_zone(text)
    return text if schema.get("type") == "string" else read_json(text)
