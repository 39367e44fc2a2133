"""A page of a table is what sorting and filtering everything by hand would give."""

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stub_server.kernel.clock import iso
from stub_server.kernel.ids import uuid_text
from stub_server.kernel.record import Body, Row
from stub_server.store import query as query_module
from stub_server.store.query import Query, select
from stub_server.store.table import REMEMBERED, Table
from stub_server.store.tables import TableSpec, finder

from ..engine.state import rebuilt

SPEC = TableSpec(
    "Thing",
    unique={"code": lambda shown, kept: shown.get("code")},
    derived=lambda shown, kept: {
        "search": shown["name"],
        "weight": (kept["color"], shown["size"]),
        "kinds": (kept["color"], shown["kind"]),
    },
    indexes=("kind", "color"),
    pairs=("kind+color",),
    defaults={"color": None},
    sorts=("size",),
    search=("search",),
    sums=("weight",),
    distinct=("kinds",),
)
KINDS, COLORS = ("a", "b", "c"), ("red", "blue", None)

thing = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(KINDS),
        "size": st.integers(0, 5),
        "name": st.text("xyz", max_size=3),
        "at": st.integers(0, 6),
        "color": st.sampled_from(COLORS),
    }
)
# What happens to the table: a new thing, a change of the n-th, or the n-th taken out.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("new"), thing, st.integers(0, 2**128 - 1)),
        st.tuples(st.just("change"), thing, st.integers(0, 50)),
        st.tuples(st.just("drop"), thing, st.integers(0, 50)),
    ),
    max_size=40,
)
queries = st.builds(
    Query,
    equal=st.dictionaries(st.sampled_from(["kind", "color"]), st.none(), max_size=2).flatmap(
        lambda names: st.fixed_dictionaries(
            {name: st.sampled_from(KINDS if name == "kind" else ("red", "blue")) for name in names}
        )
    ),
    within=st.none() | st.just(("color", ("red", "blue"))),
    contains=st.just({}) | st.just({"search": finder("x")}),
    between=st.just({}) | st.just({"size": (1, 4)}),
    since=st.none() | st.integers(0, 6),
    until=st.none() | st.integers(0, 6),
    sort=st.none() | st.just("size"),
    newest_first=st.booleans(),
    page=st.integers(1, 4),
    limit=st.integers(1, 7),
)


def accept(_: Body) -> None:
    """These things have no contract."""


def play(
    moves: list[tuple[str, Body, int]], after_each: Callable[[Table], object] = len
) -> tuple[Table, dict[str, tuple[Body, Body]]]:
    """A table after the moves, and the same things kept plainly."""
    table = Table("things", SPEC, accept)
    plain: dict[str, tuple[Body, Body]] = {}
    run(moves, table, plain, after_each)
    return table, plain


def run(
    moves: list[tuple[str, Body, int]],
    table: Table,
    plain: dict[str, tuple[Body, Body]],
    after_each: Callable[[Table], object] = len,
) -> None:
    """Make the moves."""
    for verb, values, number in moves:
        values = dict(values)
        kept = {"color": values.pop("color")}
        at = values.pop("at")
        if verb == "new":
            ident = uuid_text(number)
            if ident in plain:
                continue
            shown = {"id": ident, "code": ident, "createdAt": iso(at), **values}
            table.replace(None, Row(table.prepare(ident, shown, kept, None, at), shown, kept))
            plain[ident] = (shown, kept)
        elif plain:
            ident = list(plain)[number % len(plain)]
            row = table.open(ident)
            assert row is not None
            if verb == "drop":
                table.replace(row, None)
                del plain[ident]
            else:
                shown = {**row.public, **values}
                table.replace(row, Row(table.prepare(ident, shown, kept, row, 0), shown, kept))
                plain[ident] = (shown, kept)
        after_each(table)


def by_hand(plain: dict[str, tuple[Body, Body]], query: Query) -> tuple[list[str], int]:
    """The ids of the page and the total, the slow way."""

    def matches(shown: Body, kept: Body) -> bool:
        at = int(shown["createdAt"][-4:-1])
        everything = {**shown, **kept}
        return (
            all(everything[name] == value for name, value in query.equal.items())
            and (query.within is None or kept["color"] in query.within[1])
            and all(finds(shown["name"]) for finds in query.contains.values())
            and all(low <= shown["size"] < high for low, high in query.between.values())
            and (query.since is None or at >= query.since)
            and (query.until is None or at < query.until)
        )

    def place(shown: Body) -> tuple[Any, ...]:
        first = (shown["size"],) if query.sort else ()
        return (*first, shown["createdAt"], shown["id"])

    found = sorted((shown for shown, kept in plain.values() if matches(shown, kept)), key=place)
    if query.newest_first:
        found.reverse()
    start = (query.page - 1) * query.limit
    return [shown["id"] for shown in found[start : start + query.limit]], len(found)


@pytest.mark.check
@given(steps, queries)
@settings(max_examples=75)
def test_a_page_is_what_sorting_by_hand_gives(moves: list[tuple[str, Body, int]], query: Query) -> None:
    """Whatever was written, changed and dropped before, and whichever filters come together."""
    table, plain = play(moves)
    records, total = select(table, query)
    assert by_hand(plain, query) == ([record.id for record in records], total)


@pytest.mark.check
@given(steps, queries)
@settings(max_examples=60)
def test_a_page_of_a_view_is_what_sorting_by_hand_gives(moves: list[tuple[str, Body, int]], query: Query) -> None:
    """A list that is kept once it was asked for follows every write since: asked before the first and after each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_module, "SORTED_OUTRIGHT", -1)  # as if every list were long
        table, plain = play(moves, lambda table: select(table, query))
        records, total = select(table, query)
    assert by_hand(plain, query) == ([record.id for record in records], total)


def test_every_kind_of_view_is_what_sorting_by_hand_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many things, by each number of conditions, in each order."""
    monkeypatch.setattr(query_module, "SORTED_OUTRIGHT", -1)
    rng = Random(1)

    def one() -> Body:
        kind, color = rng.choice(KINDS), rng.choice(COLORS)
        return {"kind": kind, "size": rng.randrange(6), "name": "", "at": rng.randrange(7), "color": color}

    table, plain = play([("new", one(), rng.getrandbits(128)) for _ in range(60)])
    for equal, within, sort, newest_first in product(
        ({}, {"kind": "a"}, {"kind": "a", "color": "red"}),
        (None, ("color", ("red", "blue"))),
        (None, "size"),
        (True, False),
    ):
        query = Query(equal=dict(equal), within=within, sort=sort, newest_first=newest_first, page=2, limit=3)
        records, total = select(table, query)
        assert by_hand(plain, query) == ([record.id for record in records], total), query


def test_a_table_remembers_so_many_lists() -> None:
    """Many different questions do not pile up."""
    table, _ = play([("new", {"kind": "a", "size": 1, "name": "x", "at": 0, "color": None}, 7)])
    for number in range(3 * REMEMBERED):
        select(table, Query(since=number))
        assert 0 < len(table.lists) <= REMEMBERED


def _data(table: Table, name: str) -> dict[str, Any]:
    """What the parts of a kind hold."""
    return {each: part.data for each, part in getattr(table, name).items()}


def _counted(table: Table, name: str) -> dict[str, dict[Any, Any]]:
    """What a table has counted and is not nothing."""
    counted = getattr(table, name)
    return {rule: {group: value for group, value in groups.data.items() if value} for rule, groups in counted.items()}


@pytest.mark.check
@given(steps, steps, queries)
@settings(max_examples=60)
def test_what_was_rebuilt_is_what_was_written_one_by_one(
    before: list[tuple[str, Body, int]], after: list[tuple[str, Body, int]], query: Query
) -> None:
    """A table made anew from its records, and other writes then: nothing tells it from one that never was."""
    written, plain = play(before)
    table = rebuilt(written)
    run(after, table, plain)
    one_by_one = play(before + after)[0]
    records, total = select(table, query)
    assert by_hand(plain, query) == ([record.id for record in records], total)
    for name in ("keys", "unique"):
        assert getattr(one_by_one, name) == getattr(table, name), name
    for name in ("sums", "distinct"):
        assert _counted(one_by_one, name) == _counted(table, name), name
    assert list(one_by_one.order) == list(table.order)
    for name in ("indexes", "sorts", "texts"):
        assert _data(one_by_one, name) == _data(table, name), name


@pytest.mark.check
@given(steps, steps, steps, queries)
@settings(max_examples=60)
def test_copies_share_nothing_that_changes(
    before: list[tuple[str, Body, int]],
    here: list[tuple[str, Body, int]],
    there: list[tuple[str, Body, int]],
    query: Query,
) -> None:
    """What is written to a table, to its copy and to a copy of the copy is seen in each of them alone."""
    table, plain = play(before)
    twin, same = table.copy(), dict(plain)
    run(here, table, plain)
    third, of_third = twin.copy(), dict(same)
    run(there, twin, same)
    run(here, third, of_third)
    for one, by in ((table, plain), (twin, same), (third, of_third)):
        records, total = select(one, query)
        assert by_hand(by, query) == ([record.id for record in records], total)
        anew = rebuilt(one)
        for name in ("rows", "keys", "unique"):
            assert getattr(anew, name) == getattr(one, name), name
        for name in ("indexes", "sorts", "texts", "sums"):
            assert _data(anew, name) == _data(one, name), name


def test_a_default_of_the_hidden_part_is_not_kept_and_comes_back() -> None:
    """What has its usual value takes no memory; whoever opens the record sees it all the same."""
    table = Table("things", SPEC, accept)
    shown = {"id": uuid_text(1), "code": "1", "createdAt": iso(0), "kind": "a", "size": 1, "name": "x"}
    for kept, stored in (({}, b"{}"), ({"color": "red"}, b'{"color":"red"}'), ({"color": None}, b"{}")):
        row = table.open(uuid_text(1))
        record = table.prepare(uuid_text(1), shown, kept, row, 0)
        table.replace(row, Row(record, shown, table.completed(kept)))
        assert stored == record.hidden
        assert {"color": kept.get("color")} == rebuilt(table).parse(record).hidden


def test_a_peek_shows_the_present_version() -> None:
    """A parsed part that is kept is dropped with the version it was made of."""
    table, _ = play([("new", {"kind": "a", "size": 1, "name": "x", "at": 0, "color": None}, 7)])
    ident = uuid_text(7)
    first = table.peek(ident)
    assert first is not None
    assert first is table.peek(ident)
    row = table.open(ident)
    assert row is not None
    changed = {**row.public, "size": 2}
    table.replace(row, Row(table.prepare(ident, changed, row.hidden, row, 0), changed, row.hidden))
    assert changed == table.peek(ident)
    row = table.open(ident)
    assert row is not None
    table.replace(row, None)
    assert table.peek(ident) is None


@pytest.mark.check
@given(steps)
@settings(max_examples=100)
def test_sums_and_distinct_counts_are_folds_over_the_records(moves: list[tuple[str, Body, int]]) -> None:
    """A running total never drifts from what it sums."""
    table, plain = play(moves)
    for color in ("red", "blue"):
        here = [shown for shown, kept in plain.values() if kept["color"] == color]
        assert sum(shown["size"] for shown in here) == table.total("weight", color)
        assert len({shown["kind"] for shown in here}) == len(table.members("kinds", color))


@given(steps, steps)
@settings(max_examples=50)
def test_a_copy_goes_its_own_way(first: list[tuple[str, Body, int]], then: list[tuple[str, Body, int]]) -> None:
    """Writing to a copy leaves the original's records, indexes and sums as they were."""
    table, plain = play(first)
    before = select(table, Query(limit=100)), dict(table.sums["weight"].data)
    twin = table.copy()
    for record in select(twin, Query(limit=100))[0]:
        twin.replace(twin.parse(record), None)
    assert before == (select(table, Query(limit=100)), table.sums["weight"].data)
    assert len(plain) == len(table)
    assert len(twin) == 0
