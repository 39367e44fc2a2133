"""Filters of lists as fields of a form: what the contract says of an operation's query."""

import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from flask import g, request

from ..contract.document import Document, Operation
from .client import Refused
from .filters import words

_PAGING = frozenset(("page", "limit"))
_WHOLE = re.compile(r"[0-9]{1,19}").fullmatch


class Field(NamedTuple):
    """One field. `kind` is `check`, `text` or `number`; with `options` it is a choice."""

    name: str
    label: str
    kind: str
    options: list[str]
    help: str
    value: str = ""
    hint: str = ""


def fields(
    document: Document, operation: Operation, first: Sequence[str] = (), without: Collection[str] = ()
) -> list[Field]:
    """The filters of a list, with the values of this page's query; those named in `first` come first."""
    described = {raw["name"]: raw for raw in map(document.resolve, operation.raw.get("parameters", ()))}
    found = []
    for parameter in operation.parameters:
        if parameter.place != "query" or parameter.name in _PAGING or parameter.name in without:
            continue
        schema = document.resolve(parameter.schema)
        options = [str(option) for option in schema.get("enum", ())]
        kind = "check" if schema.get("type") == "boolean" and schema.get("default") is False else "text"
        if schema.get("type") == "boolean" and kind == "text":
            options = ["true", "false"]
        value = request.args.get(parameter.name, "")
        help_ = described[parameter.name].get("description", "")
        hint = g.clock["now"] if schema.get("format") == "date-time" else ""
        found.append(Field(parameter.name, words(parameter.name), kind, options, help_, value, hint))
    return sorted(found, key=lambda field: first.index(field.name) if field.name in first else len(first))


def listed(path: str, filters: list[Field], limit: int, **nothing: Any) -> dict[str, Any]:
    """What a template shows of a list with its filters. A filter that is refused is its `problem`, beside `nothing`."""
    shown: dict[str, Any] = {
        "filters": filters,
        "is_filtered": any(field.value for field in filters),
        "problem": None,
        "pagination": {"total": 0, "total_pages": 0},
    }
    try:
        found: dict[str, Any] = g.client.get(path, query(filters, limit=limit))
        return shown | found
    except Refused as refused:
        if refused.status != 422:
            raise
        return shown | nothing | {"problem": refused}


def query(fields: list[Field], **further: Any) -> dict[str, Any]:
    """The query that a page asks with: its filters and the page."""
    page = request.args.get("page", "")
    return {field.name: field.value for field in fields} | {"page": page} | further


def given(*texts: str, numbers: Sequence[str] = ()) -> dict[str, Any]:
    """What of the form was filled in, as members of a body: of `numbers` a whole number as such.

    What is no number where one is needed is refused by the control that gets it.
    """
    filled = {name: request.form.get(name, "").strip() for name in (*texts, *numbers)}
    return {name: int(text) if name in numbers and _WHOLE(text) else text for name, text in filled.items() if text}
