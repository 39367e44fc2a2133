"""What pages say of a value: its type, limits in words, allowed values, and the fields inside."""

from typing import Any

import pytest

from stub_server.console.fields import MOST, row, rows
from stub_server.contract.document import Document

NAMED = {
    "Size": {"type": "string", "enum": ["s", "m"]},
    "Tree": {
        "type": "object",
        "properties": {"leaf": {"type": "string"}, "next": {"$ref": "#/components/schemas/Tree"}},
    },
    "Nest": {"type": "array", "items": {"$ref": "#/components/schemas/Nest"}},
    **{
        f"Wide{level}": {
            "type": "object",
            "properties": {f"m{at}": {"$ref": f"#/components/schemas/Wide{level + 1}"} for at in range(9)},
        }
        for level in range(7)
    },
    "Wide7": {"type": "string"},
}
DOCUMENT = Document({"paths": {}, "components": {"schemas": NAMED}})
SIZE, NULL = {"$ref": "#/components/schemas/Size"}, {"type": "string", "nullable": True, "enum": [None]}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string", "format": "uuid"}, "string (uuid)"),
        ({"type": "integer", "nullable": True}, "integer or null"),
        ({"type": "array", "items": SIZE}, "array of string"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "map of number"),
        ({"oneOf": [SIZE, NULL]}, "string or null"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "integer or string"),
        ({"allOf": [{"$ref": "#/components/schemas/Tree"}]}, "object"),
        ({}, "any"),
    ],
)
def test_a_type_is_told_as_the_contract_names_it(schema: Any, kind: str) -> None:
    assert kind == row(DOCUMENT, "it", schema, required=False).type


@pytest.mark.parametrize(
    ("schema", "limits"),
    [
        ({"minLength": 1, "maxLength": 9}, ("1 to 9 characters",)),
        ({"maxLength": 1}, ("at most 1 character",)),
        ({"minItems": 1, "uniqueItems": True}, ("at least 1 entry", "all different")),
        ({"maxItems": 10}, ("at most 10 entries",)),
        ({"minProperties": 1}, ("at least 1 field",)),
        ({"minimum": 0, "exclusiveMinimum": True}, ("more than 0",)),
        ({"minimum": 0.01, "maximum": 5, "multipleOf": 0.01}, ("0.01 to 5", "in steps of 0.01")),
        ({"pattern": r"^[^\u0000]*$"}, ("without the character NUL",)),
        ({"type": "array", "items": {"type": "string", "maxLength": 3}}, ("each at most 3 characters",)),
        ({"additionalProperties": {"type": "string"}}, ("keys of 1 to 64 characters",)),
    ],
)
def test_limits_are_told_in_words(schema: Any, limits: tuple[str, ...]) -> None:
    assert limits == row(DOCUMENT, "it", schema, required=False).limits


def test_a_pattern_without_words_is_shown_unless_the_format_is_what_is_checked() -> None:
    assert "^a+$" == row(DOCUMENT, "it", {"pattern": "^a+$"}, required=False).pattern
    assert None is row(DOCUMENT, "it", {"pattern": "^a+$", "format": "document"}, required=False).pattern


@pytest.mark.parametrize("schema", [SIZE, {"oneOf": [SIZE, NULL]}, {"type": "array", "items": SIZE}])
def test_allowed_values_are_told_without_null(schema: Any) -> None:
    assert ("s", "m") == row(DOCUMENT, "it", schema, required=False).allowed


def test_fields_inside_have_dotted_names() -> None:
    """As refusals name them, without the number of an entry."""
    inner = {"type": "object", "required": ["b"], "properties": {"b": {"type": "string"}}}
    schema = {
        "properties": {
            "one": inner,
            "list": {"type": "array", "items": inner},
            "map": {"type": "object", "additionalProperties": inner},
            "either": {"oneOf": [inner, {"properties": {"c": {}}}]},
        }
    }
    found = [(each.above + each.name, each.required) for each in rows(DOCUMENT, schema)]
    below = {"one": ["one.b"], "list": ["list[].b"], "map": ["map.*.b"], "either": ["either.b", "either.c"]}
    assert [(name, name.endswith(".b")) for top, names in below.items() for name in (top, *names)] == found


def test_a_schema_inside_itself_ends() -> None:
    tree = {"$ref": "#/components/schemas/Tree"}
    assert ["leaf", "next"] == [each.name for each in rows(DOCUMENT, tree)]
    nest = row(DOCUMENT, "it", {"$ref": "#/components/schemas/Nest"}, required=False)
    assert nest.type.startswith("array of array of")
    assert [] == rows(DOCUMENT, {"$ref": "#/components/schemas/Nest"})


def test_a_schema_that_branches_without_end_is_cut() -> None:
    """Nine fields, each with nine, seven levels down: five million."""
    assert MOST == len(rows(DOCUMENT, {"$ref": "#/components/schemas/Wide0"}))
