"""A pointer into the bundled contract is a line of its files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stub_server.contract.pointers import below
from stub_server.tools.verify.where import Where

from ..support.contract import OPENAPI, document
from .reports import where

GENERATED = {"$ref", "enum", "x-emits", "x-emitted-by", "parameters"}
"""What bundling writes, or puts together of two lists, and references, which are followed."""


def places(node: Any, pointer: str, name: str) -> Iterator[tuple[str, str]]:
    """The pointer and the name of every member below a node."""
    if isinstance(node, dict):
        # by bundling, most of it
        made = ("headers", "content") if "x-codes" in node else ("headers", "x-rules", "examples")
        for key, value in node.items():
            if key not in made:
                yield below(pointer, key), key
                yield from places(value, below(pointer, key), key)
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from places(value, f"{pointer}/{number}", name)


def test_the_line_of_every_member_has_its_name() -> None:
    found, raw = where(), document().raw
    every = [*places(raw["paths"], "#/paths", "paths")]
    for name, schema in raw["components"]["schemas"].items():
        if name != "WebhookPayload":  # generated from x-webhooks
            every += places(schema, f"#/components/schemas/{name}", name)
    told = {pointer: found.line(pointer) for pointer, _ in every}
    wrong = [
        pointer
        for pointer, name in every
        if name not in told[pointer].text and name not in GENERATED
    ]
    assert [] == wrong
    assert len(every) > 5_000


def test_what_an_overlay_changed_is_a_line_of_the_overlay(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "overlay: 1.0.0\ninfo: { title: t, version: '1' }\nactions:\n  - target:"
        " $.components.schemas.CustomerCreate.properties.name\n    update: { maxLength: 60 }\n"
    )
    overlaid = Where(OPENAPI, [file])
    line = overlaid.line("#/components/schemas/CustomerCreate/properties/name/maxLength")
    assert (str(file), 4) == (line.file, line.number)
    assert (
        "openapi/components/schemas/customers.yaml"
        == overlaid.line("#/components/schemas/CustomerCreate/properties/email").file
    )
