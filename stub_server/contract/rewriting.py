"""Walks through a translated schema and changes its nodes, for keywords that a validator is better given otherwise."""

from collections.abc import Callable
from typing import Any

from .source import Json

Change = Callable[[dict[str, Any]], bool]
"""Changes one node in place, the nodes below it being done; answers whether it did."""


def rewritten(node: Json, change: Change) -> Json:
    """A schema with its nodes changed; the same object if none is. What an `enum` lists is left alone."""
    if isinstance(node, list):
        items = [rewritten(value, change) for value in node]
        return items if any(a is not b for a, b in zip(items, node, strict=True)) else node
    if not isinstance(node, dict):
        return node
    result = {key: value if key == "enum" else rewritten(value, change) for key, value in node.items()}
    return result if change(result) or any(result[key] is not value for key, value in node.items()) else node
