"""Which requests test what an operation accepts."""

from copy import deepcopy

import pytest

from stub_server.contract.document import Document
from stub_server.contract.formats import formats
from stub_server.domain.documents import is_document
from stub_server.tools.verify.catalogue import Catalogue
from stub_server.tools.verify.journeys.accepting import repeats
from stub_server.tools.verify.probes import Builder, Probe
from stub_server.tools.verify.variants import Fresh, Variants

from ..support.contract import document


@pytest.mark.parametrize(
    ("longest", "first"), [(255, "Idempotency-Key: too long"), (None, "with an Idempotency-Key")]
)
def test_a_key_is_too_long_only_where_the_contract_has_a_length(
    longest: int | None, first: str
) -> None:
    raw = deepcopy(document().raw)
    if longest is None:
        del raw["components"]["parameters"]["IdempotencyKey"]["schema"]["maxLength"]
    overlaid = Document(raw)
    variants = Variants(overlaid, formats(is_document, is_document), "2030-01-01T00:00:00.000Z")
    builder = Builder(Catalogue(overlaid), variants, Fresh("abcdef", 42, "keys"), charges=False)
    operation = overlaid.operations["createProduct"]
    probe = next(repeats(builder, operation, builder.body(operation)))
    assert isinstance(probe, Probe)
    assert first == probe.learns
