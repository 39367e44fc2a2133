"""Variants keep each limit of a schema exactly or pass it by one; values that are drawn are nobody's."""

import re
from typing import Any

import pytest

from stub_server.contract.formats import formats
from stub_server.domain.documents import is_document_here, is_document_unchecked
from stub_server.tools.verify.catalogue import Catalogue, pointer_of
from stub_server.tools.verify.probes import Builder
from stub_server.tools.verify.variants import NOWHERE, Fresh, Variant, Variants, applied, size_of

from ..support.contract import document

WITH_BODIES = [name for name, operation in document().operations.items() if operation.body is not None]
NOW = "2026-11-20T14:32:05.123Z"


def fresh(run: str = "0a1b2c", seed: int = 42) -> Fresh:
    return Fresh(run, seed, "of a test")


def variants() -> Variants:
    return Variants(document(), formats(is_document_here, is_document_unchecked), NOW)


def of_operation(name: str) -> tuple[list[list[Variant]], list[Variant], Any]:
    """The groups of values that an operation accepts, the bodies that it refuses, and the body of both."""
    operation = document().operations[name]
    builder = Builder(Catalogue(document()), variants(), fresh(), charges=True)
    assert operation.body is not None
    body, where = builder.body(operation), pointer_of(operation)
    return (
        builder.variants.groups(operation.body, where, body, builder.fresh),
        [*builder.variants.refused(operation.body, where, body, builder.fresh)],
        body,
    )


@pytest.mark.parametrize("name", WITH_BODIES)
def test_values_are_accepted_or_refused_as_they_say_and_point_to_a_line(name: str) -> None:
    operation, judge = document().operations[name], variants()
    groups, refused, body = of_operation(name)
    assert operation.body is not None
    assert refused
    for group in groups:
        assert judge.accepts(operation.body, applied(body, group)), group
    for variant in refused:
        assert not judge.accepts(operation.body, variant.value), variant
    for variant in (*refused, *(part for group in groups for part in group)):
        node: Any = document().raw
        for step in variant.pointer.removeprefix("#/").split("/"):
            node = node[step.replace("~1", "/").replace("~0", "~")]


def test_limits_and_every_value_of_an_enum_are_tried_in_few_bodies_and_one_more_is_refused() -> None:
    schema = {
        "type": "object",
        "required": ["size"],
        "additionalProperties": False,
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 9},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "name": {"type": "string", "maxLength": 4},
            "list": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
        },
    }
    body = {"size": 3, "kind": "a", "name": "x", "list": ["x"]}
    groups = variants().groups(schema, "#", body, fresh())
    sizes = [{part.place[0]: size_of(part.value) for part in group} for group in groups]
    assert [{"size": 1, "kind": 1, "name": 4, "list": 0}, {"size": 9, "kind": 1, "list": 2}] == sizes
    refused = [variant.tries for variant in variants().refused(schema, "#", body, fresh())]
    for tries in ("size: left out", "size: below the minimum", "name: 5 characters", "list: 3 entries", "list: null"):
        assert tries in refused


@pytest.mark.parametrize("name", ["updateCustomer", "updatePlan", "updateProduct", "updateWebhook", "updateProject"])
def test_another_value_of_each_member_is_another(name: str) -> None:
    operation, judge, drawn = document().operations[name], variants(), fresh()
    for member, node in document().resolve(operation.body or {})["properties"].items():
        if not member.endswith(("Id", "Ids")):
            first = judge.another(node, member, None, drawn)
            second = judge.another(node, member, first, drawn)
            assert None not in (first, second), member
            assert first != second, member


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
