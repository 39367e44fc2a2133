"""The journal alone: so many requests, so many bytes, and no more of a path or query than
anybody reads.
"""

import pytest

from stub_server.engine import journal as journals
from stub_server.engine.journal import LONGEST, Journal, Trace

MIB = 1024 * 1024


def trace(
    path: str = "/v2/customers", query: bytes = b"", size: int = 1_000, ident: str = "req_1"
) -> Trace:
    """A request."""
    made = Trace(ident, 0, "GET", path, query, sandbox="default")
    made.size = size
    return made


def filled(journal: Journal, count: int, size: int) -> Journal:
    """The journal with so many requests of so many bytes."""
    for _ in range(count):
        journal.append(trace(size=size))
    return journal


def test_a_path_and_a_query_are_kept_up_to_a_length() -> None:
    path, query = "/v2/" + "é" * LONGEST, b"a" * (LONGEST + 1)
    assert (path[:LONGEST] + "…", query[:LONGEST] + "…".encode()) == (
        trace(path).path,
        trace(query=query).query,
    )
    assert ("/v2/" + "x" * (LONGEST - 4), b"a" * LONGEST) == (
        trace("/v2/" + "x" * (LONGEST - 4)).path,
        trace(query=b"a" * LONGEST).query,
    )


@pytest.mark.promise("journal")
def test_bytes_are_bounded() -> None:
    journal = filled(Journal(), 100, MIB)
    assert (32, 32 * MIB) == (len(journal), journal.size)
    journal.append(trace(size=33 * MIB))
    assert (0, 0, 101) == (len(journal), journal.size, journal.appended)
    assert 32 * MIB == journals.MOST_BYTES
