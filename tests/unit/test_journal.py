"""The journal alone: so many requests, so many bytes, and no more of a path or query than anybody reads."""

from sys import getsizeof

from stub_server.kernel.trace import KEPT, KEPT_BYTES, LONGEST, Journal, Trace


def trace(path: str = "/v2/customers", query: bytes = b"") -> Trace:
    """A request."""
    return Trace("req_1", 0, "GET", path, query, "default")


def test_a_path_and_a_query_are_kept_up_to_a_length() -> None:
    path, query = "/v2/" + "é" * LONGEST, b"a" * (LONGEST + 1)
    assert (path[:LONGEST] + "…", query[:LONGEST] + "…".encode()) == (trace(path).path, trace(query=query).query)
    assert ("/v2/" + "x" * (LONGEST - 4), b"a" * LONGEST) == (
        trace("/v2/" + "x" * (LONGEST - 4)).path,
        trace(query=b"a" * LONGEST).query,
    )


def test_so_many_requests_are_kept() -> None:
    journal = Journal()
    made = [trace() for _ in range(KEPT + 3)]
    for each in made:
        journal.append(each)
    assert (KEPT, made[3], made[-1]) == (len(journal), journal[0], journal[-1])


def test_long_paths_of_wide_characters_are_bounded_in_bytes() -> None:
    """Two thousand of them held half a gigabyte."""
    journal = Journal()
    for _ in range(KEPT):
        journal.append(trace("/v2/" + "\U0001f600" * 60_000, b"a" * 60_000))
    held = sum(getsizeof(each.path) + len(each.query) for each in journal)
    assert KEPT_BYTES // 2 < held <= KEPT_BYTES
    for _ in range(KEPT):
        journal.append(trace())
    assert KEPT == len(journal)
