"""What SQLite and PostgreSQL have in common: the tables of a store, and the statements.

`docs/stores.md` says what the tables are for. What a damaged disk could change carries a sum: the
rows of sandboxes and states have that of their values, a state also that of its parts, and a step
that of its line and its place. What reads checks that, and raises Damage.
"""

import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, count, islice
from secrets import token_bytes, token_hex
from typing import Any, TypeVar

from ..version import __version__
from .database import (
    Change,
    Damage,
    Database,
    Kept,
    KeptState,
    Session,
    Statement,
    StoreError,
    Values,
)

FORMAT = 16  # of the tables and their content: another one is not read
STEPS = 32  # bits of a step's place for its number, after those for the number of its sandbox
_LAST = (1 << STEPS) - 1
# Rows of a statement. One statement for each, sent without waiting, is not for PostgreSQL: it
# keeps the transaction, and its locks, of a process that stops in between.
_AT_ONCE = 500

TABLES = """
create table settings (name text primary key, value text not null, sum {int} not null);
create table sandboxes (
    id {int} primary key, name text not null unique, created_at {int} not null, expires_at {int},
    last_used_at {int} not null, next_due {int}, newest {int} not null, about text not null,
    sum {int} not null, holder {int} not null
);
create table states (
    id {int} primary key, sandbox {int} not null references sandboxes on delete cascade,
    name text not null, about text not null, step {int} not null, size {int} not null,
    checksum {int} not null, sum {int} not null, unique (sandbox, name)
);
create table parts (
    state {int} not null, place {int} not null, body {bytes} not null, primary key (state, place)
);
create table credentials (
    credential text primary key, sandbox {int} not null references sandboxes on delete cascade
);
create index credentials_sandbox on credentials (sandbox);
create table steps (place {int} primary key, line {bytes} not null, sum {int} not null);
"""


T = TypeVar("T")
AT_ONCE = 200  # steps that are read at once
# seconds after which the parts that no state has are deleted: one may be written right now
UNUSED = 900
_ROOM = 64 * 1024  # bytes that must have room before changes are accepted again
_PART = "insert into parts values (?, ?, ?)"
_ROW = ", ".join(Kept._fields)
_SET = ", ".join(f"{name} = ?" for name in (*Kept._fields[1:], "sum"))


# -- sums and names


def sum_of(*values: object) -> int:
    """The checksum of a row's values."""
    return zlib.crc32(repr(values).encode())


def sum_of_step(place: int, line: bytes) -> int:
    """The checksum of a step, with its number in its sandbox."""
    return zlib.crc32(line, place & _LAST)


def place_of(sandbox: int, number: int) -> int:
    """The place of a step among all: after the earlier ones of its sandbox."""
    return sandbox << STEPS | number


def check(is_whole: bool, what: str) -> None:
    """Raises Damage where something is not as it was written."""
    if not is_whole:
        raise Damage(f"{what} is not as it was written")


# -- the whole store


def begin(session: Session, seed: int, columns: dict[str, str], own: str = "") -> None:
    """Create the tables of a new store, and its `own`; `columns` names the types.

    The seed is the store's from then on: keys of a plain server follow from it.
    """
    for statement in (TABLES.format(**columns) + own).split(";\n"):
        if statement.strip():
            session.run(statement)
    facts = {
        "format": str(FORMAT),
        "server": __version__,
        "secret": token_hex(32),
        "seed": str(seed),
    }
    for name, value in facts.items():
        session.run("insert into settings values (?, ?, ?)", name, value, sum_of(name, value))


def facts(session: Session, name: str) -> tuple[bytes, int]:
    """The secret and the seed with which servers of a store sign. Raises StoreError."""
    found = dict[str, str]()
    for fact, value, stored_sum in session.run("select name, value, sum from settings"):
        check(stored_sum == sum_of(fact, value), "the table settings")
        found[fact] = value
    check(found.keys() >= {"format", "secret", "seed"}, "the table settings")
    if found["format"] != str(FORMAT):
        raise StoreError(
            f"{name}: version {found.get('server', 'unknown')} wrote it, in format"
            f" {found['format']}, and this one, {__version__}, reads format {FORMAT}. Start that"
            " version, or give this one an empty store."
        )
    return bytes.fromhex(found["secret"]), int(found["seed"])


# -- reading


def listed(session: Session) -> list[Kept]:
    """Every sandbox."""
    # no values
    return list(map(Kept._make, session.run(f"select {_ROW} from sandboxes")))  # noqa: S608


def due(session: Session, store: Database, now: int) -> list[str]:
    """Names of sandboxes that no other process has and whose deliveries or expiry are due at an
    instant (ms).
    """
    found = (
        # no values
        "select name from sandboxes where (next_due <= ? or expires_at <= ?) "  # noqa: S608
        f"and (holder = ? or holder not in ({store.living})) limit 10"
    )
    return _column(session.run(found, now, now, store.holder))


def _column(rows: Iterable[Values]) -> list[Any]:
    """The values of rows that have one each."""
    return [value for (value,) in rows]


def has(session: Session, name: str) -> bool:
    """Whether there is a sandbox of a name."""
    return bool(session.run("select 1 from sandboxes where name = ?", name))


def sandbox_with(session: Session, key: str) -> str | None:
    """The name of the sandbox that an API key belongs to."""
    for (name,) in session.run(
        "select name from sandboxes where id = (select sandbox from credentials where credential"
        " = ?)",
        key,
    ):
        return str(name)
    return None


def keys_of(session: Session, sandbox: int) -> list[str]:
    """The API keys that belong to a sandbox."""
    return _column(session.run("select credential from credentials where sandbox = ?", sandbox))


def sandbox(session: Session, name: str) -> Kept | None:
    """A sandbox, if it is there. Raises Damage."""
    found = f"select {_ROW}, sum from sandboxes where name = ?"  # noqa: S608 - no values
    for *row, stored_sum in session.run(found, name):
        check(stored_sum == sum_of(*row), "its row")
        return Kept(*row)
    return None


def states(session: Session, sandbox: int) -> list[KeptState]:
    """The state of a sandbox, then those of its snapshots in the order in which they were written.

    Raises Damage.
    """
    rows = session.run(
        "select id, name, about, step, size, checksum, sum from states where sandbox = ?"
        " order by name != '', id",
        sandbox,
    )
    found = []
    for *row, stored_sum in rows:
        state = KeptState(*row)
        check(stored_sum == sum_of(*state), f"the state {state.name!r}")
        found.append(state)
    check(found[:1] != [] and found[0].name == "", "its state")
    return found


def lines(session: Session, state: KeptState) -> Iterator[bytes]:
    """The lines of a state. Raises Damage."""
    checksum = 0
    body = "select body from parts where state = ? and place = ?"
    for place in count():
        rows = session.run(body, state.id, place)
        if not rows:
            break
        part = b""
        with suppress(TypeError, zlib.error):
            part = zlib.decompress(rows[0][0])
        check(part != b"", "a part of a state")
        checksum = zlib.crc32(part, checksum)
        yield from part.splitlines()
    check(checksum == state.checksum, "a part of a state")


def steps_of(session: Session, kept: Kept, after: KeptState) -> Iterator[bytes]:
    """The steps of a sandbox since a state. Raises Damage."""
    sandbox = kept.id
    number = after.step
    statement = (
        "select place, line, sum from steps where place > ? and place <= ? order by place limit ?"
    )
    last = place_of(sandbox, kept.newest)
    while rows := session.run(statement, place_of(sandbox, number), last, AT_ONCE):
        for place, line, stored_sum in rows:
            number += 1
            is_next = place == place_of(sandbox, number) and isinstance(line, bytes)
            check(is_next and stored_sum == sum_of_step(place, line), f"step {number}")
            yield line
    check(number == kept.newest, f"step {kept.newest}")


# -- writing


def write_state(
    session: Session, name: str, about: str, step: int, parts: Iterable[bytes]
) -> KeptState:
    """Write the parts of a state after a step, which nothing refers to yet."""
    ident = time.time_ns()
    size = 0
    checksum = 0
    for place, part in enumerate(parts):
        # at the first of zlib's levels JSON shrinks to an eighth
        session.run(_PART, ident, place, zlib.compress(part, 1))
        size += len(part)
        checksum = zlib.crc32(part, checksum)
    return KeptState(ident, name, about, step, size, checksum)


def commit(session: Session, changes: Sequence[Change], holder: int) -> set[int]:
    """Commit changes; returns the numbers of those that could not be made: `holder` does not have
    the sandbox, or not with that newest step, or the name of a new one is taken.
    """
    lost = set()
    with session.transaction():
        for change in changes:
            if not _row_changed(session, change, holder):
                lost.add(change.number)
                continue
            for statement, values in change.statements:
                session.run(statement, *values)
    return lost


def steps_entered(steps: Iterable[tuple[int, bytes]]) -> Iterator[Statement]:
    """Add steps, each with its place, many with each statement."""
    for few in batched(steps):
        rows = [(place, line, sum_of_step(place, line)) for place, line in few]
        # no values
        insert = f"insert into steps values {_places('(?, ?, ?)', rows)}"  # noqa: S608
        yield insert, tuple(chain(*rows))


def batched(items: Iterable[T]) -> Iterator[list[T]]:
    """The items of a statement, and those of further ones."""
    left = iter(items)
    while few := list(islice(left, _AT_ONCE)):
        yield few


def _places(row: str, rows: Sequence[object]) -> str:
    return ", ".join([row] * len(rows))


def _row_changed(session: Session, change: Change, holder: int) -> bool:
    """Change the row of a sandbox, or delete it; False where that cannot be done."""
    if change.ends:
        return bool(
            session.run(
                "delete from sandboxes where id = ? and holder = ? returning id",
                change.number,
                holder,
            )
        )
    kept = change.row
    if kept is None:
        return True
    if change.before is None:  # it is new, unless its name is taken
        row = (*kept, sum_of(*kept), holder)
        places = ", ".join("?" * len(row))
        # no values
        insert = f"insert into sandboxes ({_ROW}, sum, holder) values ({places})"  # noqa: S608
        return bool(session.run(f"{insert} on conflict do nothing returning id", *row))
    # no values
    update = f"update sandboxes set {_SET} where id = ? and newest = ? and holder = ? returning id"  # noqa: S608
    return bool(session.run(update, *kept[1:], sum_of(*kept), change.number, change.before, holder))


def probe() -> Statement:
    """A statement that needs room: a part that no state has."""
    return _PART, (-time.time_ns(), 0, token_bytes(_ROOM))


def keys_entered(keys: Sequence[str], sandbox: int) -> Iterator[Statement]:
    """API keys belong to a sandbox, unless an earlier one has them: a copy takes no keys from its
    parent.

    The sandbox may have been deleted since the keys were made.
    """
    for few in batched(keys):
        given = f"(values {_places('(?)', few)}) as given"
        yield (
            f"insert into credentials select column1, id from sandboxes, {given}"  # noqa: S608 - no values
            " where id = ? on conflict do nothing",
            (*few, sandbox),
        )


def state_entered(sandbox: int, state: KeptState) -> list[Statement]:
    """A state of a sandbox, in place of the one of its name."""
    return [
        state_ended(sandbox, state.name),
        (
            "insert into states values (?, ?, ?, ?, ?, ?, ?, ?)",
            (state.id, sandbox, *state[1:], sum_of(*state)),
        ),
    ]


def state_ended(sandbox: int, name: str) -> Statement:
    """Delete a state of a sandbox, if it is there."""
    return "delete from states where sandbox = ? and name = ?", (sandbox, name)


def steps_ended(sandbox: int, last: int = _LAST) -> Statement:
    """Delete the steps of a sandbox, up to a number."""
    return "delete from steps where place >= ? and place <= ?", (
        place_of(sandbox, 0),
        place_of(sandbox, last),
    )


def delete_unused(session: Session) -> bool:
    """Delete some of the parts that no state has; False where there is none.

    They are searched for before they are deleted: that takes long, and SQLite has one writer.
    """
    found = session.run(
        "select state, place from parts where state < ?"
        " and not exists (select 1 from states where id = state) limit 16",
        time.time_ns() - UNUSED * 10**9,
    )
    for state, place in found:
        session.run("delete from parts where state = ? and place = ?", state, place)
    return bool(found)
