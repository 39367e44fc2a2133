"""Keys of records, which tables and indexes are dicts of."""

from itertools import pairwise
from uuid import UUID

import pytest

from stub_server.core.record import place

MODULUS = 2**61 - 1
"""Python's hash of an int is the int modulo this."""


@pytest.mark.promise("nothing-request-costs-more-length")
def test_ids_cannot_be_chosen_so_that_all_keys_have_one_hash() -> None:
    idents = [str(UUID(int=(1 << 100) + number * MODULUS)) for number in range(1_000)]
    keys = [place(0, ident) for ident in idents]
    assert all(first < second for first, second in pairwise(keys))
    assert len({*map(hash, keys)}) > 990
