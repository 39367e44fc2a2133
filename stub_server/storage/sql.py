"""What SQLite and PostgreSQL have in common: the tables of a store, and the statements.

`docs/stores.md` says what the tables are for. What a damaged disk could change carries a sum: the
rows of sandboxes and states have that of their values, every step one that is chained to the step
before, and a chunk is named by its digest. What reads checks that, and raises Damage.
"""

import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import chain
from secrets import token_bytes, token_hex
from typing import Any

from ..core.clock import wall_ms
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

FORMAT = 15  # of the tables and their content: another one is not read
STEPS = 32  # bits of a step's place for its number, after those for the number of its sandbox
# Rows of a statement. One statement for each, sent without waiting, is not for PostgreSQL: it
# keeps the transaction, and its locks, of a process that stops in between.
_AT_ONCE = 500

TABLES = """
create table settings (name text primary key, value text not null, sum {int} not null);
create table chunks (digest {bytes} primary key, body {bytes} not null, used_at {int} not null);
create table sandboxes (
    id {int} primary key, name text not null unique, created_at {int} not null, expires_at {int},
    last_used_at {int} not null, next_due {int}, newest {int} not null, chain {int} not null,
    about text not null, sum {int} not null, holder {int} not null
);
create table states (
    id {int} primary key, sandbox {int} not null references sandboxes on delete cascade,
    name text not null, about text not null, step {int} not null, chain {int} not null,
    size {int} not null, sum {int} not null, unique (sandbox, name)
);
create table state_chunks (
    state {int} not null references states on delete cascade, place {int} not null,
    digest {bytes} not null references chunks, primary key (state, place)
);
create index state_chunks_digest on state_chunks (digest);
create table credentials (
    credential text primary key, sandbox {int} not null references sandboxes on delete cascade
);
create index credentials_sandbox on credentials (sandbox);
create table steps (place {int} primary key, line {bytes} not null, sum {int} not null);
"""


AT_ONCE = 200  # steps that are read at once
# ms after which a chunk that no state has is deleted: a state that is being written may need it
UNUSED = 300_000
_SPEED = 1  # of zlib's levels: JSON shrinks to an eighth
_ROOM = 64 * 1024  # bytes that must have room before changes are accepted again
_ROW = ", ".join(Kept._fields)
_SET = ", ".join(f"{name} = ?" for name in (*Kept._fields[1:], "sum"))


# -- sums and names


def sum_of(*values: object) -> int:
    """The checksum of a row's values."""
    return zlib.crc32(repr(values).encode())


def chained(line: bytes, chain: int) -> int:
    """The sum of a step that follows one with the sum `chain`."""
    return zlib.crc32(line, chain)


def digest_of(chunk: bytes) -> bytes:
    """The name of a chunk."""
    return blake2b(chunk, digest_size=16).digest()


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
    rows = session.run(
        "select name from sandboxes where id = (select sandbox from credentials where credential"
        " = ?)",
        key,
    )
    return next(iter(_column(rows)), None)


def keys_of(session: Session, sandbox: int) -> list[str]:
    """The API keys that belong to a sandbox."""
    return _column(session.run("select credential from credentials where sandbox = ?", sandbox))


def keys_of_others(session: Session, keys: Sequence[str], sandbox: int) -> list[str]:
    """Those of these API keys that belong to other sandboxes."""
    found = []
    for begin in range(0, len(keys), _AT_ONCE):
        few = keys[begin : begin + _AT_ONCE]
        places = ", ".join("?" * len(few))
        # no values
        theirs = f"select credential from credentials where credential in ({places})"  # noqa: S608
        found += _column(session.run(f"{theirs} and sandbox != ?", *few, sandbox))
    return found


def sandbox(session: Session, name: str) -> tuple[int, Kept] | None:
    """A sandbox and its number, if it is there. Raises Damage."""
    found = f"select id, {_ROW}, sum from sandboxes where name = ?"  # noqa: S608 - no values
    for number, *row, stored_sum in session.run(found, name):
        check(stored_sum == sum_of(*row), "its row")
        return number, Kept(*row)
    return None


def states(session: Session, sandbox: int) -> list[KeptState]:
    """The state of a sandbox, then those of its snapshots in the order in which they were written.

    Raises Damage.
    """
    rows = session.run(
        "select name, about, step, chain, size, id, sum from states where sandbox = ?"
        " order by name != '', id",
        sandbox,
    )
    found = []
    for *row, number, stored_sum in rows:
        chunks = session.run(
            "select digest from state_chunks where state = ? order by place", number
        )
        digests = list(map(bytes, _column(chunks)))
        check(stored_sum == sum_of(*row, b"".join(digests)), f"the state {row[0]!r}")
        name, about, step, chain, size = row
        found.append(KeptState(number, step, size, digests, name, about, chain))
    check(found[:1] != [] and found[0].name == "", "its state")
    return found


def lines(session: Session, state: KeptState) -> Iterator[bytes]:
    """The lines of a state. Raises Damage."""
    for digest in state.digests:
        rows = session.run("select body from chunks where digest = ?", digest)
        chunk = b""
        with suppress(IndexError, TypeError, zlib.error):
            chunk = zlib.decompress(rows[0][0])
        check(digest_of(chunk) == digest, "a part of a state")
        yield from chunk.splitlines()


def steps_of(session: Session, sandbox: int, kept: Kept, after: KeptState) -> Iterator[bytes]:
    """The steps of a sandbox since a state, each with the sum that follows from those before.

    Raises Damage.
    """
    number, chain = after.step, after.chain
    statement = (
        "select place, line, sum from steps where place > ? and place <= ? order by place limit ?"
    )
    last = place_of(sandbox, kept.newest)
    while rows := session.run(statement, place_of(sandbox, number), last, AT_ONCE):
        for place, line, stored_sum in rows:
            number += 1
            is_next = place == place_of(sandbox, number) and isinstance(line, bytes)
            check(is_next and stored_sum == (chain := chained(line, chain)), f"step {number}")
            yield line
    check((number, chain) == (kept.newest, kept.chain), f"step {number}")


def size_of_steps(session: Session, sandbox: int) -> int:
    """How many bytes the steps of a sandbox have."""
    found = "select coalesce(sum(length(line)), 0) from steps where place >= ? and place <= ?"
    ((size,),) = session.run(found, place_of(sandbox, 0), place_of(sandbox + 1, 0))
    return int(size)


# -- writing


def write_state(session: Session, step: int, chunks: Iterable[bytes]) -> KeptState:
    """Write the chunks of a state after a step, which nothing refers to yet."""
    size, digests = 0, []
    for chunk in chunks:
        digest, now = digest_of(chunk), wall_ms()
        # one that stays for long enough is not touched: SQLite would write all of it again
        stays = "select 1 from chunks where digest = ? and used_at > ?"
        update = "update chunks set used_at = ? where digest = ? returning 1"
        if not (session.run(stays, digest, now - UNUSED // 10) or session.run(update, now, digest)):
            statement, values = _chunk_entered(digest, zlib.compress(chunk, _SPEED), now)
            session.run(statement, *values)
        digests.append(digest)
        size += len(chunk)
    return KeptState(time.time_ns(), step, size, digests)


def _chunk_entered(digest: bytes, body: bytes, used_at: int) -> Statement:
    return "insert into chunks values (?, ?, ?) on conflict do nothing", (digest, body, used_at)


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


def inserted(table: str, rows: Sequence[Values]) -> Iterator[Statement]:
    """Add rows of three values, many with each statement."""
    for begin in range(0, len(rows), _AT_ONCE):
        few = rows[begin : begin + _AT_ONCE]
        places = ", ".join(["(?, ?, ?)"] * len(few))
        yield f"insert into {table} values {places}", tuple(chain(*few))  # noqa: S608 - no values


def _row_changed(session: Session, change: Change, holder: int) -> bool:
    """Change the row of a sandbox, or delete it with its steps; False where that cannot be done."""
    if change.ends is not None:
        ended = "delete from sandboxes where id = ? and holder = ? returning id"
        if not session.run(ended, change.ends, holder):
            return False
        statement, values = steps_ended(change.ends)
        session.run(statement, *values)
    kept = change.row
    if kept is None:
        return True
    if change.before is None:
        return entered(session, change.number, kept, holder)
    # no values
    update = f"update sandboxes set {_SET} where id = ? and newest = ? and holder = ? returning id"  # noqa: S608
    where = change.number, change.before, holder
    return bool(session.run(update, *kept[1:], sum_of(*kept), *where))


def entered(session: Session, number: int, kept: Kept, holder: int) -> bool:
    """Add a sandbox; False where its name is taken."""
    row = (number, *kept, sum_of(*kept), holder)
    places = ", ".join("?" * len(row))
    # no values
    insert = f"insert into sandboxes (id, {_ROW}, sum, holder) values ({places})"  # noqa: S608
    return bool(session.run(f"{insert} on conflict do nothing returning id", *row))


def probe() -> Statement:
    """A statement that needs room: a chunk that no state has."""
    return _chunk_entered(token_bytes(16), token_bytes(_ROOM), 0)


def keys_entered(keys: Sequence[str], sandbox: int) -> Iterator[Statement]:
    """API keys belong to a sandbox, unless an earlier one has them: a copy takes no keys from its
    parent.

    The sandbox may have been deleted since the keys were made.
    """
    for begin in range(0, len(keys), _AT_ONCE):
        few = keys[begin : begin + _AT_ONCE]
        places = ", ".join(["(?)"] * len(few))
        # no values
        yield (
            f"insert into credentials select column1, id from sandboxes, (values {places}) as given"  # noqa: S608
            " where id = ? on conflict do nothing",
            (*few, sandbox),
        )


def state_entered(sandbox: int, state: KeptState) -> list[Statement]:
    """A state of a sandbox, in place of the one of its name."""
    ident, step, size, digests, name, about, chain = state
    stored_sum = sum_of(name, about, step, chain, size, b"".join(digests))
    row = ident, sandbox, name, about, step, chain, size, stored_sum
    chunks = [(ident, place, digest) for place, digest in enumerate(digests)]
    return [
        state_ended(sandbox, name),
        ("insert into states values (?, ?, ?, ?, ?, ?, ?, ?)", row),
        *inserted("state_chunks", chunks),
    ]


def state_ended(sandbox: int, name: str) -> Statement:
    """Delete a state of a sandbox, if it is there."""
    return "delete from states where sandbox = ? and name = ?", (sandbox, name)


def steps_ended(sandbox: int, last: int = (1 << STEPS) - 1) -> Statement:
    """Delete the steps of a sandbox, up to a number."""
    return "delete from steps where place >= ? and place <= ?", (
        place_of(sandbox, 0),
        place_of(sandbox, last),
    )


def delete_unused(session: Session) -> bool:
    """Delete some of the chunks that no state has; False where there is none.

    They are searched for before they are deleted: that takes long, and SQLite has one writer.
    """
    of_none = (
        "used_at < ? and not exists (select 1 from state_chunks where state_chunks.digest ="
        " chunks.digest)"
    )
    until = wall_ms() - UNUSED
    # no values
    found = _column(session.run(f"select digest from chunks where {of_none} limit 16", until))  # noqa: S608
    for digest in found:
        session.run(f"delete from chunks where digest = ? and {of_none}", digest, until)  # noqa: S608
    return bool(found)
