"""Writing in bulk: what a lived past leaves out must not show in the world that comes of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stub_server.kernel.record import Body
from stub_server.store.lived import LivedTable
from stub_server.store.memory import Store
from stub_server.store.spec import TableSpec
from stub_server.store.table import Table

from ..support.worlds import lines, world

AT = "2026-11-20T12:00:00.000Z"
IDENT = "00000000-0000-0000-0000-000000000001"


@contextmanager
def one_by_one(store: Store) -> Iterator[None]:
    """What `Store.in_bulk` must equal."""
    yield


@pytest.mark.parametrize("scenario", ["default", "extremes", "past_due"])
def test_a_past_lived_in_bulk_leaves_the_world_of_one_lived_step_by_step(
    scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are opened without parsing are never changed in place, and every version keeps the contract."""
    in_bulk = list(lines(world(scenario)))
    monkeypatch.setattr(Store, "in_bulk", one_by_one)
    assert list(lines(world(scenario))) == in_bulk


class Broken(Exception):
    """The check of these tests."""


def short(public: Body) -> None:
    """Names have at most five letters."""
    if len(public["name"]) > 5:
        raise Broken(public["name"])


def write(table: Table, name: str) -> None:
    """Write the next version of one record."""
    public: dict[str, Any] = {"id": IDENT, "name": name, "createdAt": AT}
    before = table.open(IDENT)
    record = table.prepare(IDENT, public, {}, before)
    if before is None:
        table.enter(record, public, {})
    else:
        table.put(record, public, {}, before)


def written_in_bulk(*names: str) -> Table:
    """A table after several versions of one record were written while a past was lived."""
    table = LivedTable(Table("things", TableSpec("Thing"), short))
    for name in names:
        write(table, name)
    return table.finished()


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
