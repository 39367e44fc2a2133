"""Values of another contract: what is new is filled in, and what does not fit then is named."""

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


CASES: dict[str, tuple[Json, Json, Json]] = {
    "null where there is no default": (record(a=TEXT, b=OR_NULL), {"a": "x"}, {"a": "x", "b": None}),
    "its default": (record(a={"type": "integer", "default": 7}), {}, {"a": 7}),
    "its default before null": (record(a=OR_NULL | {"default": "x"}), {}, {"a": "x"}),
    "null of a choice": (record(a={"oneOf": [ref("Colour"), {"enum": [None]}]}), {}, {"a": None}),
    "what is nested": (
        record(home=ref("Address")), {"home": {"city": "Recife"}}, {"home": {"city": "Recife", "district": None}},
    ),
    "what is listed": (
        record(all={"type": "array", "items": ref("Address")}),
        {"all": [{"city": "Recife"}, {"city": "Olinda", "district": "Sé"}]},
        {"all": [{"city": "Recife", "district": None}, {"city": "Olinda", "district": "Sé"}]},
    ),
    "parts that all hold": ({"allOf": [ref("Named"), record(False, nick=OR_NULL)]}, {}, {"name": "Ana", "nick": None}),
    "an optional member that it lacks": ({"type": "object", "properties": {"a": OR_NULL | {"default": "x"}}}, {}, {}),
    "a member that is not described": (record(False, a=TEXT), {"a": "x", "b": 1}, {"a": "x", "b": 1}),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_a_value_gets_what_is_new(what: str) -> None:
    schema, before, after = CASES[what]
    made = converter().filled(schema, before)
    assert after == made
    assert made == converter().filled(schema, made)
    assert converter().fits(schema, made)


UNFIT: dict[str, tuple[Json, Json, list[str]]] = {
    "a member without a default": (record(home=record(a=TEXT)), {"home": {}}, ["/home/a"]),
    "a value of an enum": (record(all={"type": "array", "items": COLOUR}), {"all": ["red", "blue"]}, ["/all/*"]),
    "a name with a slash": (record(**{"a/b": TEXT}), {}, ["/a~1b"]),
    "a member that is gone": (record(a=TEXT), {"a": "x", "b": 1}, ["/b"]),
}  # fmt: skip


@pytest.mark.parametrize("what", UNFIT)
def test_what_does_not_fit_is_named_by_its_pointer(what: str) -> None:
    schema, value, pointers = UNFIT[what]
    made = converter().filled(schema, value)
    assert not converter().fits(schema, made)
    assert pointers == [fault.pointer for fault in converter().faults(schema, made)]


def test_equal_contracts_have_one_digest() -> None:
    raw = {"info": {"version": "2.0", "title": "x"}, "paths": {}}
    other = {"paths": {}, "info": {"title": "x", "version": "2.0"}}
    changed = {"paths": {}, "info": {"title": "y", "version": "2.0"}}
    first, second, third = (Converter(Document(r), Schemas(r, NO_FORMATS)).contract for r in (raw, other, changed))
    assert first == second
    assert first["digest"] != third["digest"]
