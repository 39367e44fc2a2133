"""How much of the contract there is to read: its files, their lines by operation and
event, and its texts.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stub_server.contract.document import Document
from stub_server.contract.source import METHODS, nodes, read, unescaped, value_at

from ..support.contract import OPENAPI, document

FILES = sorted(OPENAPI.rglob("*.yaml"))
MOST_FILES, MOST_LINES_OF_ONE, MOST_FILES_OF_ONE, LONGEST = 100, 90, 12, 600
ENTRIES = ["openapi.yaml", "sandbox.yaml"]


def test_the_files_can_be_read_from_top_to_bottom() -> None:
    assert len(FILES) <= MOST_FILES
    described = sum(
        len(document(entry).operations) + len(document(entry).events) for entry in ENTRIES
    )
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in FILES)
    assert lines / described <= MOST_LINES_OF_ONE


def reached(node: Any, file: Path, met: set[tuple[Path, str]]) -> Iterator[Path]:
    """The files of a part of the contract, and of all that it refers to."""
    yield file
    for _, each in nodes([node]):
        reference = each.get("$ref") if isinstance(each, dict) else None
        if not isinstance(reference, str):
            continue
        name, _, fragment = reference.partition("#")
        target = (file.parent / name).resolve() if name else file
        if (target, fragment) not in met:
            met.add((target, fragment))
            yield from reached(value_at(read(target), unescaped(fragment)), target, met)


@pytest.mark.parametrize("folder", ["paths", "sandbox"])
def test_an_operation_is_whole_within_twelve_files(folder: str) -> None:
    found: dict[str, int] = {}
    for file in (OPENAPI / folder).glob("*.yaml"):
        for item in read(file).values():
            for method in METHODS:
                if method in item:
                    files = {
                        *reached(item[method], file, set()),
                        *reached(item.get("parameters", []), file, set()),
                    }
                    found[item[method]["operationId"]] = len(files)
    assert {} == {name: count for name, count in found.items() if count > MOST_FILES_OF_ONE}
    assert len(found) == len(
        document("openapi.yaml" if folder == "paths" else "sandbox.yaml").operations
    )


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
