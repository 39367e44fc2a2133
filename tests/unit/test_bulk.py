"""Writing in bulk: what a lived past leaves out must not show in the world that comes of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings

from stub_server.kernel.clock import parse_iso
from stub_server.kernel.ids import uuid_text
from stub_server.kernel.record import Body, Row
from stub_server.store import table as table_module
from stub_server.store.memory import Store
from stub_server.store.table import Table
from stub_server.store.tables import TableSpec, UniqueViolation, public

from ..engine.state import derived, differences, rebuilt, stale
from ..support.worlds import lines, world
from .test_query import SPEC, accept, play, run, steps

AT = "2026-11-20T12:00:00.000Z"
IDENT = "00000000-0000-0000-0000-000000000001"


def in_bulk_mode(spec: TableSpec, check: Callable[[Body], None]) -> Table:
    """An empty table in bulk mode."""
    table = Table("things", spec, check)
    table.begin_bulk()
    return table


@contextmanager
def one_by_one(store: Store) -> Iterator[None]:
    """What `Store.in_bulk` must equal."""
    yield


@pytest.mark.check
@pytest.mark.parametrize("scenario", ["default", "extremes", "past_due"])
def test_a_past_lived_in_bulk_leaves_the_world_of_one_lived_step_by_step(
    scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are opened without parsing are never changed in place, and every version keeps the contract.

    It is all the same how many of them are kept at hand.
    """
    in_bulk = world(scenario)
    with monkeypatch.context() as patched:
        patched.setattr(table_module, "RECENT", 8)
        with_few = world(scenario)
    monkeypatch.setattr(Store, "in_bulk", one_by_one)
    expected = list(lines(world(scenario)))
    for sandbox in (in_bulk, with_few):
        assert expected == list(lines(sandbox))
        assert {} == stale(sandbox)


@pytest.mark.check
@pytest.mark.parametrize("at_hand", [2, 8])
@given(moves=steps)
@settings(max_examples=50)
def test_what_was_written_in_bulk_is_what_was_written_one_by_one(
    at_hand: int, moves: list[tuple[str, Body, int]]
) -> None:
    """With everything that follows from the records, read at the end or now and then."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(table_module, "RECENT", at_hand)
        compare(moves)


def compare(moves: list[tuple[str, Body, int]]) -> None:
    """Make the moves in bulk mode and without, and compare the tables."""
    expected, plain = play(moves)
    unread, read = in_bulk_mode(SPEC, accept), in_bulk_mode(SPEC, accept)
    run(moves, unread, {})
    some = len(moves) // 2
    known: dict[str, tuple[Body, Body]] = {}
    run(moves[:some], read, known)
    whole = play(moves[:some])[0]
    assert whole.count("kind+color", ("a", "red")) == read.count("kind+color", ("a", "red"))
    assert list(whole.bucket("kind", "a")) == list(read.bucket("kind", "a"))
    assert whole.total("weight", "red") == read.total("weight", "red")
    run(moves[some:], read, known)
    assert plain == known
    for table in (unread, read):
        table.end_bulk()
        assert {} == differences(derived(expected), derived(table))


class Broken(Exception):
    """The check of these tests."""


def short(public: Body) -> None:
    """Names have at most five letters."""
    if len(public["name"]) > 5:
        raise Broken(public["name"])


def write(table: Table, name: str, ident: str = IDENT) -> None:
    """Write the next version of one record."""
    shown: dict[str, Any] = {"id": ident, "name": name, "createdAt": AT}
    before = table.open(ident)
    record = table.prepare(ident, shown, {}, before, parse_iso(AT))
    table.replace(before, Row(record, shown, {}))


def written_in_bulk(*names: str) -> Table:
    """A table after several versions of one record were written while a past was lived."""
    table = in_bulk_mode(TableSpec("Thing"), short)
    for name in names:
        write(table, name)
    table.end_bulk()
    return table


def test_a_unique_value_goes_from_one_record_to_another() -> None:
    """Whoever had it when the records were written for the first time."""
    table = in_bulk_mode(TableSpec("Thing", unique={"name": public("name")}), short)
    for number, name in ((1, "a"), (2, "b"), (3, "c"), (1, "d"), (4, "a"), (5, "e"), (6, "f"), (7, "g")):
        write(table, name, uuid_text(number))
    with pytest.raises(UniqueViolation):
        write(table, "a", uuid_text(8))
    table.end_bulk()
    assert {"a": uuid_text(4), "d": uuid_text(1)}.items() <= table.unique["name"].items()
    assert {} == differences(derived(rebuilt(table)), derived(table))


def test_a_version_that_was_written_broken_and_mended_is_none_of_its_record() -> None:
    """What counts is how it stands at the end, however early it left those at hand."""
    table = in_bulk_mode(TableSpec("Thing"), short)
    for number in range(1, 6):
        write(table, "too long", uuid_text(number))
    for number in range(1, 5):
        write(table, "short", uuid_text(number))
    with pytest.raises(Broken, match="too long"):
        table.end_bulk()
    write(table, "short", uuid_text(5))
    table.end_bulk()
    assert 5 == len(table)


def test_the_last_version_of_a_record_is_held_to_the_contract() -> None:
    """The check that bulk puts off is made up for, by record."""
    with pytest.raises(Broken, match="too long"):
        written_in_bulk("short", "too long")


def test_a_version_that_was_replaced_meanwhile_is_not() -> None:
    """Nobody can ever read it."""
    table = written_in_bulk("too long", "short")
    with pytest.raises(Broken, match="too long"):
        write(table, "too long")
    row = table.open(IDENT)
    assert row is not None
    assert ("short", 2) == (row.public["name"], row.record.version)
