"""Values of another contract as a schema has them: what is new is filled, what is gone goes, what fits stays."""

from typing import Any

import pytest

from stub_server.contract.converting import Converter
from stub_server.contract.document import Document
from stub_server.contract.formats import NO_FORMATS
from stub_server.contract.schema import Schemas

Json = Any
TEXT = {"type": "string"}
OR_NULL = {"type": "string", "nullable": True}
COLOUR = {"type": "string", "enum": ["red", "green"]}
NAMED = {
    "Address": {
        "type": "object",
        "additionalProperties": False,
        "required": ["city", "district"],
        "properties": {"city": TEXT, "district": OR_NULL},
    },
    "Colour": COLOUR,
    "Named": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "default": "Ana"}}},
    "Card": {
        "type": "object",
        "additionalProperties": False,
        "required": ["last4", "brand"],
        "properties": {"last4": TEXT, "brand": OR_NULL},
    },
    "Pix": {
        "type": "object",
        "additionalProperties": False,
        "required": ["txid", "bank"],
        "properties": {"txid": TEXT, "bank": OR_NULL},
    },
}


def ref(name: str) -> Json:
    """A reference to a named schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def record(closed: bool = True, /, **properties: Json) -> Json:
    """An object that requires these members."""
    made = {"type": "object", "required": [*properties], "properties": properties}
    return made | {"additionalProperties": False} if closed else made


def converter() -> Converter:
    """Of a contract with these schemas."""
    raw = {"openapi": "3.0.3", "info": {"version": "1"}, "paths": {}, "components": {"schemas": NAMED}}
    return Converter(Document(raw), Schemas(raw, NO_FORMATS))


PAID = {"oneOf": [ref("Card"), ref("Pix")]}
CASES: dict[str, tuple[Json, Json, Json]] = {
    "null where there is no default": (record(a=TEXT, b=OR_NULL), {"a": "x"}, {"a": "x", "b": None}),
    "its default": (record(a={"type": "integer", "default": 7}), {}, {"a": 7}),
    "its default before null": (record(a=OR_NULL | {"default": "x"}), {}, {"a": "x"}),
    "null of a choice": (record(a={"oneOf": [ref("Colour"), {"enum": [None]}]}), {}, {"a": None}),
    "an empty map": (record(a={"type": "object", "additionalProperties": TEXT}), {}, {"a": {}}),
    "the order of the contract": (record(a=OR_NULL, b=TEXT), {"b": "x"}, {"a": None, "b": "x"}),
    "what was dropped": (record(a=TEXT), {"a": "x", "b": 1}, {"a": "x"}),
    "what is nested": (
        record(home=ref("Address")),
        {"home": {"city": "Recife", "zip": "1"}},
        {"home": {"city": "Recife", "district": None}},
    ),
    "what is listed": (
        record(all={"type": "array", "items": ref("Address")}),
        {"all": [{"city": "Recife"}, {"city": "Olinda", "district": "Sé"}]},
        {"all": [{"city": "Recife", "district": None}, {"city": "Olinda", "district": "Sé"}]},
    ),
    "values of a map": (
        {"type": "object", "additionalProperties": ref("Address")},
        {"x": {"city": "Recife"}},
        {"x": {"city": "Recife", "district": None}},
    ),
    "parts that all hold": (
        {"allOf": [ref("Named"), {"required": ["nick"]}, {"properties": {"nick": OR_NULL}}]},
        {},
        {"name": "Ana", "nick": None},
    ),
    "the only schema that takes it": (PAID, {"last4": "1234"}, {"last4": "1234", "brand": None}),
    "the one that leaves out least": (
        {"anyOf": [record(note=OR_NULL), ref("Card")]}, {"last4": "1234", "old": 1}, {"last4": "1234", "brand": None},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_a_value_gets_what_it_lacks_and_loses_what_is_gone(what: str) -> None:
    schema, before, after = CASES[what]
    made = converter().converted(schema, before)
    assert after == made
    assert list(after) == list(made)
    assert made is converter().converted(schema, made)


SAME: dict[str, tuple[Json, Json]] = {
    "an optional member that it lacks": ({"type": "object", "properties": {"a": OR_NULL | {"default": "x"}}}, {}),
    "a member of an open object": (record(False, a=TEXT), {"a": "x", "b": 1}),
    "one of two": (PAID, {"txid": "1", "bank": None}),
    "a value of a longer enum": (COLOUR, "green"),
}


@pytest.mark.parametrize("what", SAME)
def test_what_fits_stays_the_same_object(what: str) -> None:
    schema, value = SAME[what]
    assert value is converter().converted(schema, value)


UNFIT: dict[str, tuple[Json, Json, list[str]]] = {
    "a member without a default": (record(home=record(a=TEXT)), {"home": {}}, ["/home/a"]),
    "a value of an enum": (record(all={"type": "array", "items": COLOUR}), {"all": ["red", "blue"]}, ["/all/*"]),
    "a name with a slash": (record(**{"a/b": TEXT}), {}, ["/a~1b"]),
    "two schemas that take it alike": (
        record(x={"oneOf": [record(a=OR_NULL), record(b=OR_NULL)]}), {"x": {}}, ["/x"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", UNFIT)
def test_what_cannot_be_converted_is_named_by_its_pointer(what: str) -> None:
    schema, value, pointers = UNFIT[what]
    made = converter().converted(schema, value)
    assert not converter().fits(schema, made)
    assert pointers == [fault.pointer for fault in converter().faults(schema, made)]


def test_equal_contracts_have_one_digest() -> None:
    raw = {"info": {"version": "2.0", "title": "x"}, "paths": {}}
    other = {"paths": {}, "info": {"title": "x", "version": "2.0"}}
    changed = {"paths": {}, "info": {"title": "y", "version": "2.0"}}
    first, second, third = (Converter(Document(r), Schemas(r, NO_FORMATS)).contract for r in (raw, other, changed))
    assert first == second
    assert first["digest"] != third["digest"]
