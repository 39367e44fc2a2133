"""The journal alone: no more of a path or query than anybody reads."""

from stub_server.engine.kept import LONGEST, Trace


def trace(
    path: str = "/v2/customers", query: bytes = b"", size: int = 1_000, ident: str = "req_1"
) -> Trace:
    """A request."""
    made = Trace(ident, 0, "GET", path, query, sandbox="default")
    made.size = size
    return made


def test_a_path_and_a_query_are_kept_up_to_a_length() -> None:
    path = "/v2/" + "é" * LONGEST
    query = b"a" * (LONGEST + 1)
    assert (path[:LONGEST] + "…", query[:LONGEST] + "…".encode()) == (
        trace(path).path,
        trace(query=query).query,
    )
    assert ("/v2/" + "x" * (LONGEST - 4), b"a" * LONGEST) == (
        trace("/v2/" + "x" * (LONGEST - 4)).path,
        trace(query=b"a" * LONGEST).query,
    )
