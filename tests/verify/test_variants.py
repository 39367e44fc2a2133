"""Variants keep each limit of a schema exactly or pass it by one; values that are drawn are nobody's."""

import re
from typing import Any

import pytest

from stub_server.contract.formats import formats
from stub_server.domain.documents import is_document_here, is_document_unchecked
from stub_server.verify.catalogue import Catalogue, pointer_of
from stub_server.verify.probes import Builder
from stub_server.verify.variants import NOWHERE, Fresh, Variant, Variants

from ..support.contract import document

WITH_BODIES = [name for name, operation in document().operations.items() if operation.body is not None]
NOW = "2026-11-20T14:32:05.123Z"


def fresh(run: str = "0a1b2c", seed: int = 42) -> Fresh:
    return Fresh(run, seed, "of a test")


def variants() -> Variants:
    return Variants(document(), formats(is_document_here, is_document_unchecked), NOW)


def of_operation(name: str) -> list[Variant]:
    operation = document().operations[name]
    builder = Builder(Catalogue(document()), variants(), fresh(), charges=True)
    assert operation.body is not None
    return [*builder.variants.of_body(operation.body, pointer_of(operation), builder.body(operation), builder.fresh)]


@pytest.mark.parametrize("name", WITH_BODIES)
def test_a_variant_is_accepted_or_refused_as_it_says(name: str) -> None:
    operation, judge, seen = document().operations[name], variants(), of_operation(name)
    assert operation.body is not None
    assert seen
    for variant in seen:
        assert judge.accepts(operation.body, variant.value) is variant.is_accepted, variant


@pytest.mark.parametrize("name", WITH_BODIES)
def test_where_a_variant_points_there_is_a_line(name: str) -> None:
    for variant in of_operation(name):
        node: Any = document().raw
        for step in variant.pointer.removeprefix("#/").split("/"):
            node = node[step.replace("~1", "/").replace("~0", "~")]


@pytest.mark.parametrize(
    ("name", "member"),
    [("createCustomer", "name"), ("createPlan", "name"), ("createProduct", "name"), ("createProject", "name")],
)
def test_the_longest_text_and_one_more_are_tried(name: str, member: str) -> None:
    operation = document().operations[name]
    assert operation.body is not None
    most = document().resolve(document().resolve(operation.body)["properties"][member])["maxLength"]
    tried = {(len(v.value[member]), v.is_accepted) for v in of_operation(name) if (member,) in v.places and
             isinstance(v.value.get(member), str)}  # fmt: skip
    assert {(most, True), (most + 1, False)} <= tried


def test_bounds_of_numbers_and_every_value_of_an_enum_are_tried() -> None:
    schema = {
        "type": "object",
        "required": ["size"],
        "additionalProperties": False,
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 9},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "list": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
        },
    }
    tried = [*variants().of_body(schema, "#", {"size": 3, "kind": "a", "list": ["x"]}, fresh())]
    said = {(repr(v.value), v.is_accepted) for v in tried}
    for value, is_accepted in (
        ({"size": 3}, True),
        ({"size": 1, "kind": "a", "list": ["x"]}, True),
        ({"size": 0, "kind": "a", "list": ["x"]}, False),
        ({"size": 9, "kind": "a", "list": ["x"]}, True),
        ({"size": 10, "kind": "a", "list": ["x"]}, False),
        ({"size": 3, "kind": "b", "list": ["x"]}, True),
        ({"size": 3, "kind": "a", "list": ["x"] * 3}, False),
        ({"size": None, "kind": "a", "list": ["x"]}, False),
        ({"kind": "a", "list": ["x"]}, False),
    ):
        assert (repr(value), is_accepted) in said


def test_values_of_one_run_and_seed_are_drawn_again_and_of_another_run_are_others() -> None:
    draws = [[each.document(), each.name(), each.value("email")] for each in (fresh(), fresh(), fresh("ffffff"))]
    assert draws[0] == draws[1]
    assert not {*draws[0]} & {*draws[2]}


def test_drawn_values_are_nobodys() -> None:
    drawn = fresh()
    assert is_document_here(drawn.document())
    assert str(drawn.value("email")).endswith("@example.com")
    assert str(drawn.value("url")).startswith(NOWHERE)
    assert re.match(r"verify-0a1b2c-\w{6}-", drawn.name())
    assert 10 == len(drawn.name(10))
    assert drawn.value("description") is None


def test_a_body_is_renewed_but_for_what_a_variant_has_changed() -> None:
    body = {"name": "Ana", "customer": {"document": "1", "document_type": "CNPJ", "email": "a@b.co"}, "url": "x"}
    renewed = fresh().renewed(body, frozenset({("name",), ("customer", "email")}))
    assert ("Ana", "a@b.co") == (renewed["name"], renewed["customer"]["email"])
    assert renewed["url"].startswith(NOWHERE)
    assert is_document_here(renewed["customer"]["document"])
    assert "document_type" not in renewed["customer"]  # the new document is a CPF
    kept = fresh().renewed(body, frozenset({("customer", "document_type")}))
    assert "CNPJ" == kept["customer"]["document_type"]
