"""JSON Pointers into a bundled contract: what they lead to, and where parts of values have
their schemas.
"""

from collections.abc import Sequence
from typing import Any

from .document import Document
from .source import Json, escaped, unescaped


def below(pointer: str, *steps: str | int) -> str:
    """The pointer to what is below another one."""
    return "/".join((pointer, *map(escaped, steps)))


def located(document: Document, pointer: str) -> tuple[list[str | int], Any]:
    """The place of what a pointer leads to, with references on the way followed, and what is there,
    or None.
    """
    at: list[str | int] = []
    node: Any = document.raw
    for step in unescaped(pointer):
        if isinstance(node, dict) and "$ref" in node:
            at, node = [*unescaped(node["$ref"])], document.resolve(node)
        key = int(step) if isinstance(node, list) and step.isdecimal() else step
        try:
            node = node[key]
        except (KeyError, IndexError, TypeError):
            node = None
        at.append(key)
    return at, node


def canonical(document: Document, pointer: str) -> str:
    """The pointer with references on its way replaced, so that each place has exactly one."""
    return below("#", *located(document, pointer)[0]) if pointer else ""


def within(document: Document, pointer: str, path: Sequence[str | int]) -> tuple[str, Json, str]:
    """Pointer and schema of a part of a value whose schema is at a pointer, and its path:
    `customers[].metadata.*`. The path may be without positions in lists.

    If the contract has no schema for the whole path, these are the last ones on the way.
    """
    schema, text = document.resolve(located(document, pointer)[1]), ""
    pending = [*path]
    while pending:
        key = pending.pop(0)
        if isinstance(key, str) and schema.get("type") == "array":
            pending.insert(0, key)
            key = 0
        steps, name = ["items"], "[]"
        if key in schema.get("properties", ()):
            steps, name = ["properties", str(key)], f".{key}"
        elif isinstance(key, str):  # a free key differs from record to record
            steps, name = ["additionalProperties"], ".*"
        inner = schema
        for step in steps:
            inner = inner.get(step)
        if not isinstance(inner, dict):
            return pointer, schema, f"{text}.{key}".removeprefix(".")
        text += name
        pointer, schema = canonical(document, below(pointer, *steps)), document.resolve(inner)
    return pointer, schema, text.removeprefix(".")
