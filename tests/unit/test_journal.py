"""The journal alone: no more of a path or query than anybody reads."""

from stub_server.engine.kept import LONGEST, Trace


def test_a_path_and_a_query_are_kept_up_to_a_length() -> None:
    path = "/v2/" + "é" * LONGEST
    long = Trace("req_1", 0, "GET", path, b"a" * (LONGEST + 1))
    assert (path[:LONGEST] + "…", b"a" * LONGEST + "…".encode()) == (long.path, long.query)
    whole = Trace("req_2", 0, "GET", path[:LONGEST], b"a" * LONGEST)
    assert (path[:LONGEST], b"a" * LONGEST) == (whole.path, whole.query)
