"""Schemas, examples, provenance: every example is valid, every default fits, the
source is marked.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from stub_server.contract.schema import Validator
from stub_server.contract.source import Place, nodes, read

from ..support.contract import OPENAPI, document, schemas, violations
from ..support.laws import every

ENTRIES = ["openapi.yaml", "sandbox.yaml"]
API = document()
COMPONENTS = [
    (entry, name) for entry in ENTRIES for name in document(entry).raw["components"]["schemas"]
]
OPERATIONS = [(entry, name) for entry in ENTRIES for name in document(entry).operations]


NO_SCHEMAS = ("example", "default", "x-basis", "x-basis-notes", "x-lifecycle")


def schema_of(entry: str, name: str) -> Any:
    """A component."""
    return document(entry).raw["components"]["schemas"][name]


def members(entry: str, name: str, kind: str) -> Iterator[tuple[Place, Any, Any]]:
    """Every schema inside a component that says something of this kind, with its place, and what it
    says.
    """
    for where, node in nodes(schema_of(entry, name), NO_SCHEMAS):
        if isinstance(node, dict) and where[-1:] != ["properties"] and kind in node:
            yield where, node, node[kind]


@every(COMPONENTS)
def test_an_enum_that_may_be_null_is_a_choice(entry: str, name: str) -> None:
    """As `oneOf: [{enum: [a, b]}, {nullable: true, enum: [null]}]`; else generators make three
    types of it.
    """
    for where, _, values in members(entry, name, "enum"):
        assert None not in values or values == [None], where


@every(COMPONENTS)
def test_no_component_is_another_name_of_a_text_or_number(entry: str, name: str) -> None:
    """openapi-generator makes an Object of it, which its Java client calls as a class of its own:
    that does not compile.
    """
    for part in schema_of(entry, name).get("allOf", ()):
        if "$ref" in part:
            assert "object" == schema_of(entry, part["$ref"].rpartition("/")[2]).get("type")


@every(COMPONENTS)
def test_the_choices_of_a_set_have_a_name(entry: str, name: str) -> None:
    """The Java client for Java's own HTTP client does not compile with an enum written in a set."""
    for where, schema, _ in members(entry, name, "uniqueItems"):
        assert "enum" not in schema["items"], where


@every(COMPONENTS)
def test_only_properties_of_the_source_are_marked_as_documented(entry: str, name: str) -> None:
    for where, schema, named in members(entry, name, "properties"):
        basis = schema.get("x-basis", {})
        assert basis.keys() <= named.keys(), where
        assert set(basis.values()) <= {"documented"}, where
        assert entry == "openapi.yaml" or not basis or name in API.raw["components"]["schemas"], (
            where
        )
        assert schema.get("x-basis-notes", {}).keys() <= named.keys(), where


@every(COMPONENTS)
def test_required_members_are_properties(entry: str, name: str) -> None:
    for where, schema, named in members(entry, name, "properties"):
        assert set(schema.get("required", ())) <= named.keys(), where


@every(ENTRIES)
def test_every_default_and_example_of_a_schema_fits_it(entry: str) -> None:
    """And no default is null: generators read a member with a default as one that must be sent."""
    for at, schema in nodes(document(entry).raw, ("example", "examples", "x-scopes")):
        if not isinstance(schema, dict) or "type" not in schema or at[-1] == "properties":
            continue
        assert schema.get("default", 0) is not None, at
        for value in [schema[key] for key in ("default", "example") if key in schema]:
            validator = schemas(entry).compile(schema, request=True)
            assert violations(validator, value) == [], at


@every(COMPONENTS)
def test_patterns_mean_the_same_to_every_engine(entry: str, name: str) -> None:
    """Anchored at both ends or at neither, digits spelled out, and no `$` that a newline could
    follow unseen.
    """
    for where, schema, pattern in members(entry, name, "pattern"):
        re.compile(pattern)
        assert r"\d" not in pattern, f"{where}: \\d means more than 0-9 to some"
        assert r"\w" not in pattern, f"{where}: \\w means more than ASCII to some"
        assert schema.get("type") == "string", where


def bodies(entry: str, name: str) -> Iterator[tuple[str, Any, Any, bool]]:
    """(place, schema, examples, is request) of every body of an operation."""
    doc = document(entry)
    raw = doc.operations[name].raw
    if "requestBody" in raw:
        for media, content in doc.resolve(raw["requestBody"])["content"].items():
            yield f"request {media}", content["schema"], content.get("examples"), True
    for status, response in raw["responses"].items():
        for media, content in doc.resolve(response).get("content", {}).items():
            yield f"{status} {media}", content["schema"], content.get("examples"), False


@every(OPERATIONS)
def test_every_body_has_named_examples(entry: str, name: str) -> None:
    doc = document(entry)
    for place, schema, examples, _ in bodies(entry, name):
        if not examples:
            assert schema.get("format") == "binary" or place.endswith("image/svg+xml"), (
                f"{place} has no example"
            )
            continue
        for key, raw in examples.items():
            assert doc.resolve(raw).get("summary"), f"{place} {key} has no summary"


def test_every_component_of_the_files_is_part_of_a_contract_and_has_a_name_of_its_own() -> None:
    known = {
        (kind, name)
        for entry in ENTRIES
        for kind, found in document(entry).raw["components"].items()
        for name in found
    }
    folder = OPENAPI / "components"
    written = [
        (file.relative_to(folder).parts[0].removesuffix(".yaml"), name)
        for file in folder.rglob("*.yaml")
        for name in read(file)
    ]
    assert [] == [each for each in written if each not in known], "nothing refers to them"
    assert [] == [each for each, count in Counter(written).items() if count > 1]


@every(API.operations)
def test_every_operation_says_where_it_is_from(name: str) -> None:
    raw = API.operations[name].raw
    assert set(raw.get("x-basis", {})) <= {"method", "path", "request", "response"}
    assert set(raw.get("x-basis", {}).values()) <= {"documented"}
    assert raw["summary"]
    assert raw["description"]


def test_the_contradictions_of_the_source_bite_where_they_say() -> None:
    listed = API.raw["x-contradictions"]
    assert [entry["id"] for entry in listed] == [f"C{n}" for n in range(1, 11)]
    for entry in listed:
        assert entry["contradiction"]
        assert entry["reading"]
        assert entry["bites"]
        for place in entry["bites"]:
            schema, _, member = place.partition(".")
            assert place in API.operations or member in API.schema(schema)["properties"], place


def idents(node: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Members that name a record, with what they hold."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from idents(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from idents(value, name)
    elif isinstance(node, str) and name.endswith(("Id", "Ids")) and name != "operationId":
        yield name, node


def test_every_record_that_a_request_example_names_has_one_of_the_world_in_its_place() -> None:
    """Each stands in the table once, so that it is sent as it is shown."""
    table = API.raw["x-example-records"]
    values = [example for examples in table.values() for example in examples]
    assert len(values) == len(set(values))
    sent = {
        ident
        for entry, name in OPERATIONS
        for _, _, examples, is_request in bodies(entry, name)
        if is_request
        for raw in (examples or {}).values()
        for _, ident in idents(document(entry).resolve(raw)["value"])
    }
    assert len(sent) >= 4
    assert sent <= set(values)
    text = str(API.raw["paths"]) + str(API.raw["components"]) + str(API.raw["x-webhooks"])
    assert [] == [
        value for value in values if value not in text + str(document("sandbox.yaml").raw)
    ]


@pytest.mark.parametrize("most", [999_999.99, 0.99, 100, 10**15])
def test_amounts_are_accepted_up_to_the_bounds_that_a_refusal_names(most: float) -> None:
    """An overlay with a maximum of 10^15 refused that very amount, for a violation in 0 places."""
    amount = {"type": "number", "minimum": 0.01, "maximum": most, "multipleOf": 0.01}
    validator = Validator(amount, {})
    for value in (-0.01, 0, 1e-20, 0.01, 0.015, most - 0.01, most, most + 0.001, most + 1):
        assert (validator.first_error(value) is None) == validator.is_valid(value), value
    assert validator.is_valid(most)
