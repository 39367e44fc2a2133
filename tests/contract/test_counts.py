"""How much of the contract there is to read: its texts."""

from collections.abc import Iterator
from typing import Any

import pytest

from stub_server.contract.document import Document
from stub_server.contract.source import nodes

from ..support.contract import document

LONGEST = 600
ENTRIES = ["openapi.yaml", "sandbox.yaml"]


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_description_is_longer_than_a_screen(entry: str) -> None:
    texts = [
        (at, node["description"])
        for at, node in nodes(document(entry).raw)
        if isinstance(node, dict) and "description" in node
    ]
    assert [] == [at for at, text in texts if isinstance(text, str) and len(text) > LONGEST]


def properties(document: Document, schema: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every property of a schema that is written out, and of those in it."""
    for name, member in schema.get("properties", {}).items():
        yield f"{place}.{name}", document.resolve(member)
        yield from properties(document, member, f"{place}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from properties(document, schema[key], f"{place}.{key}")


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_property_has_a_description(entry: str) -> None:
    contract = document(entry)
    schemas = contract.raw["components"]["schemas"]
    every = [
        each for name, schema in schemas.items() for each in properties(contract, schema, name)
    ]
    assert [] == [place for place, schema in every if not schema.get("description")]
    assert len(every) > 500
