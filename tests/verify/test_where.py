"""A pointer into the bundled contract is a line of its files."""

from pathlib import Path

from stub_server.contract.pointers import below
from stub_server.contract.source import nodes
from stub_server.tools.verify.where import Where

from ..support.contract import OPENAPI, document
from .reports import where

BUNDLED = {"$ref", "enum", "x-emits", "x-emitted-by", "parameters"}
"""What bundling writes, or puts together of two lists, and references, which are followed."""
INSIDE = ("headers", "content", "x-rules", "examples")
"""Below these, bundling writes most."""


def test_the_line_of_every_member_has_its_name() -> None:
    found, raw, told = where(), document().raw, 0
    for root in ("paths", *(f"components/schemas/{name}" for name in raw["components"]["schemas"])):
        node = document().resolve({"$ref": f"#/{root}"})
        for at, members in nodes(node, INSIDE):
            for name in members if isinstance(members, dict) else ():
                if root.endswith("WebhookPayload") or name in BUNDLED or name in INSIDE:
                    continue  # the schema is generated from x-webhooks
                assert name in found.line(below(f"#/{root}", *at, name)).text
                told += 1
    assert told > 3_000


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
