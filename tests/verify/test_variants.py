"""Variants keep each limit of a schema exactly or pass it by one; values that are drawn are nobody's."""

from typing import Any

import pytest

from stub_server.contract.formats import formats
from stub_server.domain.documents import is_document_here, is_document_unchecked
from stub_server.tools.verify.catalogue import Catalogue, pointer_of
from stub_server.tools.verify.probes import Builder
from stub_server.tools.verify.variants import Fresh, Variants, applied

from ..support.contract import document

WITH_BODIES = [name for name, operation in document().operations.items() if operation.body is not None]
NOW = "2026-11-20T14:32:05.123Z"


def fresh(run: str = "0a1b2c", seed: int = 42) -> Fresh:
    return Fresh(run, seed, "of a test")


def variants() -> Variants:
    return Variants(document(), formats(is_document_here, is_document_unchecked), NOW)


@pytest.mark.parametrize("name", WITH_BODIES)
def test_values_are_accepted_or_refused_as_they_say_and_point_to_a_line(name: str) -> None:
    operation, judge = document().operations[name], variants()
    builder = Builder(Catalogue(document()), judge, fresh(), charges=True)
    assert operation.body is not None
    body = builder.body(operation)
    found = [*judge.of_body(operation.body, pointer_of(operation), body, builder.fresh)]
    assert {True, False} >= {each.is_accepted for each in found} > {True}
    for group in judge.groups(operation.body, body, [each for each in found if each.is_accepted]):
        assert judge.accepts(operation.body, applied(body, group)), group
    for variant in found:
        assert variant.is_accepted is judge.accepts(operation.body, applied(body, [variant])), variant
        node: Any = document().raw
        for step in variant.pointer.removeprefix("#/").split("/"):
            node = node[step.replace("~1", "/").replace("~0", "~")]
