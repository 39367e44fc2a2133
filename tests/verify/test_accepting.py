"""Which requests test what an operation accepts."""

from contextlib import suppress
from copy import deepcopy

import pytest

from stub_server.contract.document import Document
from stub_server.contract.formats import formats
from stub_server.domain.documents import is_document
from stub_server.tools.verify.catalogue import Catalogue
from stub_server.tools.verify.exchange import Answer
from stub_server.tools.verify.journeys.accepting import repeats
from stub_server.tools.verify.probes import Builder, Probe, Seen
from stub_server.tools.verify.variants import Fresh, Variants

from ..support.contract import document


@pytest.mark.parametrize("longest", [255, None])
def test_a_key_is_too_long_only_where_the_contract_has_a_length(longest: int | None) -> None:
    raw = deepcopy(document().raw)
    if longest is None:
        del raw["components"]["parameters"]["IdempotencyKey"]["schema"]["maxLength"]
    overlaid = Document(raw)
    variants = Variants(overlaid, formats(is_document, is_document), "2030-01-01T00:00:00.000Z")
    builder = Builder(Catalogue(overlaid), variants, Fresh("abcdef", 42, "keys"), charges=False)
    operation = overlaid.operations["createProduct"]
    journey, learned = repeats(builder, operation, builder.body(operation)), set[str]()
    with suppress(StopIteration):
        probe = next(journey)
        while isinstance(probe, Probe):
            learned.add(probe.learns)
            probe = journey.send(Seen(Answer(201), Answer(201)))
    assert ("Idempotency-Key: too long" in learned) is (longest is not None)
