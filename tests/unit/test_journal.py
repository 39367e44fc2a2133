"""The journal alone: so many requests, so many bytes, and no more of a path or query than anybody reads."""

import pytest

from stub_server.engine import journal as journals
from stub_server.engine.bounded import Budget
from stub_server.engine.journal import KEPT, LONGEST, Journal, Trace

MIB = 1024 * 1024


def trace(path: str = "/v2/customers", query: bytes = b"", size: int = 1_000, ident: str = "req_1") -> Trace:
    """A request."""
    made = Trace(ident, 0, "GET", path, query, "default")
    made.size = size
    return made


def filled(journal: Journal, count: int, size: int) -> Journal:
    """The journal with so many requests of so many bytes."""
    for _ in range(count):
        journal.append(trace(size=size))
    return journal


def test_a_path_and_a_query_are_kept_up_to_a_length() -> None:
    path, query = "/v2/" + "é" * LONGEST, b"a" * (LONGEST + 1)
    assert (path[:LONGEST] + "…", query[:LONGEST] + "…".encode()) == (trace(path).path, trace(query=query).query)
    assert ("/v2/" + "x" * (LONGEST - 4), b"a" * LONGEST) == (
        trace("/v2/" + "x" * (LONGEST - 4)).path,
        trace(query=b"a" * LONGEST).query,
    )


def test_so_many_requests_are_kept() -> None:
    journal = Journal(5)
    made = [trace(ident=f"req_{number}") for number in range(8)]
    for each in made:
        journal.append(each)
    assert made[3:] == list(journal)
    assert made[:2:-1] == list(reversed(journal))
    assert (5, 8, made[3], made[-1]) == (len(journal), journal.appended, journal[0], journal[-1])
    assert (made[4], None) == (journal.find("req_4"), journal.find("req_2"))


def test_without_bodies_as_many_requests_are_kept_as_usual() -> None:
    assert (False, True, True) == (Journal(0).keeps_bodies, Journal(1).keeps_bodies, Journal().keeps_bodies)
    assert KEPT == len(filled(Journal(0), KEPT + 3, 1))


@pytest.mark.promise("journal")
def test_bytes_are_bounded() -> None:
    journal = filled(Journal(), 100, MIB)
    assert (32, 32 * MIB) == (len(journal), journal.size)
    journal.append(trace(size=33 * MIB))
    assert (0, 0, 101) == (len(journal), journal.size, journal.appended)
    assert 32 * MIB == journals.MOST_BYTES


def test_bytes_of_all_journals_are_bounded() -> None:
    """The largest of them makes room, and one that is emptied gives its bytes back."""
    budget = Budget(40 * MIB)
    large = filled(Journal(budget=budget), 30, MIB)
    small = filled(Journal(budget=budget), 20, MIB)
    assert (large.size + small.size, True) == (budget.used, budget.used <= budget.most)
    assert len(large) < 30
    large.clear()
    assert (0, small.size) == (large.size, budget.used)
    assert 20 == len(filled(small, 5, 0)) - 5


def test_a_fork_has_a_journal_of_its_own_with_the_same_bounds() -> None:
    parent = filled(Journal(3), 3, 1)
    twin = filled(parent.fresh(), 4, 1)
    assert (3, 3, True) == (len(parent), len(twin), twin.keeps_bodies)
    assert Journal(0).fresh().keeps_bodies is False


def test_stages_are_those_that_were_reached_with_what_each_took() -> None:
    """The last one ends with the request."""
    made = trace()
    made.began, made.auth_at, made.validate_at, made.micros = 5_000, 7_000, 12_000, 20
    assert [("route", 2), ("auth", 5), ("validate", 13)] == made.stages()
    made.auth_at = 0
    assert [("route", 7), ("validate", 13)] == made.stages()
