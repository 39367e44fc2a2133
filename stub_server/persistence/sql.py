"""What SQLite and PostgreSQL have in common: the tables of a store, and the statements.

`docs/stores.md` says what the tables are for. Every row carries a sum of its values, every step one that is chained to
the step before, and a chunk is named by its digest: a flipped bit, a gap or a row that is missing shows when it is
read. What reads checks that, and raises Damage. Statements take a session, which any thread may have.
"""

import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import orjson

from ..kernel.clock import wall_ms
from ..kernel.problem import UnusableInput
from ..kernel.record import Body
from ..version import __version__

FORMAT = 8  # of the tables and their content: another one is not read
STEPS = 32  # bits of a step's place for its number, after those for the number of its sandbox

TABLES = """
create table settings (name text primary key, value text not null, sum {int} not null);
create table chunks (digest {bytes} primary key, body {bytes} not null);
create table states (
    id {id}, sandbox {int} not null, is_used {int} not null, step {int} not null, chain {int} not null,
    size {int} not null, sum {int} not null
);
create table state_chunks (
    state {int} not null references states on delete cascade, place {int} not null,
    digest {bytes} not null references chunks, primary key (state, place)
);
create index state_chunks_digest on state_chunks (digest);
create table sandboxes (
    id {id}, name text unique, parent text, on_first_use {int} not null, created_at {int} not null, expires_at {int},
    contract text not null, last_used_at {int} not null, held {int}, incarnation text not null,
    origin_events {int} not null, generation text not null, newest {int} not null, chain {int} not null,
    state {int} not null, next_due {int}, summary text not null, sum {int} not null, holder {int} not null
);
create table snapshots (
    id {id}, sandbox {int} not null, name text not null, description text not null, now {int} not null,
    created_at {int} not null, contract text not null, state {int} not null, sum {int} not null, unique (sandbox, name)
);
create table credentials (credential text primary key, sandbox {int} not null);
create index credentials_sandbox on credentials (sandbox);
create index states_sandbox on states (sandbox);
create table steps (place {int} primary key, line {bytes} not null, sum {int} not null);
"""


class StoreError(UnusableInput):
    """A store that cannot be used, with the reason."""


class Damage(StoreError):
    """Something in a store is not as it was written, or is not there."""


class Kept(NamedTuple):
    """What is stored of a sandbox beside its state. Times are ms of the machine.

    `held` is None where nothing is delivered, `newest` the number of its newest step and `chain` the sum of that,
    `state` the state that opening it begins with, `next_due` when a delivery is due (ms of the machine), `summary` what
    lists show of it, as JSON.
    """

    name: str | None
    parent: str | None
    on_first_use: int
    created_at: int
    expires_at: int | None
    contract: str
    last_used_at: int
    held: int | None
    incarnation: str
    origin_events: int
    generation: str
    newest: int
    chain: int
    state: int
    next_due: int | None
    summary: str


class KeptSnapshot(NamedTuple):
    """What is stored of a snapshot beside its state; `now` is ms of the sandbox's clock, `description` JSON."""

    name: str
    description: str
    now: int
    created_at: int
    contract: str
    state: int


class KeptState(NamedTuple):
    """A whole state: after which step, the chain's sum there, and its bytes."""

    id: int
    step: int
    chain: int
    size: int


AT_ONCE = 200  # steps that are read or deleted at once
_SPEED = 1  # of zlib's levels: JSON shrinks to an eighth
_ROW = ", ".join(Kept._fields)
_SNAPSHOT = ", ".join(KeptSnapshot._fields)
_SET = ", ".join(f"{name} = ?" for name in (*Kept._fields[1:], "sum"))

Statement = tuple[str, tuple[Any, ...]]
"""One whose places are `?`, and the values."""

if TYPE_CHECKING:
    from .postgres import PostgresSession, PostgresStore
    from .sqlite import SqliteSession, SqliteStore

Session: TypeAlias = "PostgresSession | SqliteSession"
"""A connection: `run` sends a statement and returns its rows, `many` sends it once for each of several rows.

Within `transaction`, all is done or nothing.
"""

Database: TypeAlias = "PostgresStore | SqliteStore"
"""A database with these tables, one per server. What it raises is in its `errors`.

`seed` is that of the server that began it. `others` are the addresses of the servers that used it when this one
started, with the settings in which they should agree.

`session` is a new connection; `is_duplicate` says whether an error is that a name is taken, `reason` is the text of an
error for clients.
"""

Known: TypeAlias = dict[int, tuple[int, int, KeptState]]
"""By the numbers of sandboxes: the newest step that the store has, the sum of that, and the state."""


@dataclass(slots=True)
class Batch:
    """What is committed together: `ends` has the numbers of sandboxes that are no more, `rows` are the rows of others
    after these `steps`.

    Of a row there is the number of the sandbox, the number of its newest step in the store, and the row as it is to be.
    Where a sandbox is lost, nothing of it is stored, and where the batch `is_atomic`, nothing at all.
    """

    changes: Sequence[Statement] = ()
    rows: list[tuple[int, int, Kept]] = field(default_factory=list)
    steps: list[tuple[int, bytes, int]] = field(default_factory=list)
    is_atomic: bool = False
    ends: Sequence[int] = ()


class _Lost(Exception):
    """Undoes a transaction."""


# -- sums and names


def line_of(error: Exception) -> str:
    """The text of an error in one line: it may quote a database."""
    return " ".join(str(error).split())


def sum_of(*values: object) -> int:
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


def checked(what: str, row: Any) -> Any:
    """A row without its sum, which comes last. Raises Damage."""
    *values, stored_sum = row
    if sum_of(*values) != stored_sum:
        raise Damage(f"{what} is damaged")
    return values


# -- the whole store


def begin(session: Session, seed: int, columns: dict[str, str], own: str = "") -> None:
    """Create the tables of a new store, and its `own`; `columns` names the types.

    The seed is the store's from then on: keys of a plain server follow from it.
    """
    for statement in (TABLES.format(**columns) + own).split(";\n"):
        if statement.strip():
            session.run(statement)
    set_fact(session, "format", str(FORMAT))
    set_fact(session, "server", __version__)
    set_fact(session, "secret", token_hex(32))
    set_fact(session, "seed", str(seed))


def facts(session: Session, name: str) -> dict[str, str]:
    """The rows of `settings` of a store, with what servers of it sign with. Raises StoreError."""
    rows = session.run("select name, value, sum from settings order by name")
    found = dict(checked("a row of settings", row) for row in rows)
    format_ = found.get("format", "")
    if not format_.isdecimal():
        raise Damage("its format is missing")
    if int(format_) != FORMAT:
        raise StoreError(
            f"{name}: version {found.get('server', 'unknown')} wrote it, in format {format_}, and this one, "
            f"{__version__}, reads format {FORMAT}. Start that version, or give this one an empty store."
        )
    for fact in ("secret", "seed"):
        if fact not in found:
            raise Damage(f"the {fact} of its keys and tokens is not there")
    return found


def set_fact(session: Session, name: str, value: str) -> None:
    statement = "insert into settings values (?, ?, ?) on conflict (name) do update set value = excluded.value, "
    session.run(statement + "sum = excluded.sum", name, value, sum_of(name, value))


def check_owners(session: Session) -> None:
    """Check that no rows belong to nothing, because others are missing. Raises Damage."""
    for rows in (
        "sandboxes where name is null and sum != 0",
        "states where sandbox not in (select id from sandboxes)",
        "snapshots where sandbox not in (select id from sandboxes)",
        f"steps where place >> {STEPS} not in (select id from sandboxes)",  # noqa: S608 - no values
        "state_chunks where state not in (select id from states)",
    ):
        ((number,),) = session.run(f"select count(*) from {rows}")  # noqa: S608 - no values
        if number:
            raise Damage(f"rows of {rows.split()[0]} belong to no sandbox ({number})")


# -- reading


def count(session: Session) -> int:
    """How many sandboxes there are, with those that are being created or deleted."""
    ((number,),) = session.run("select count(*) from sandboxes where name is not null")
    return int(number)


def listed(session: Session) -> list[Kept]:
    """Every sandbox, in the order in which they were made."""
    return [Kept(*row[1:-1]) for row in rows_of_sandboxes(session)]


def due(session: Session, store: Database, now: int) -> list[str]:
    """Names of sandboxes that no other process has and whose deliveries or expiry are due at an instant (ms)."""
    found = (
        "select name from sandboxes where name is not null and (next_due <= ? or expires_at <= ?) "  # noqa: S608 - no values
        f"and (holder = ? or holder not in ({store.living})) limit 10"
    )
    return [name for (name,) in session.run(found, now, now, store.holder)]


def names(session: Session, most: int) -> list[str]:
    """The names of the sandboxes that were used last."""
    found = "select name from sandboxes where name is not null order by last_used_at desc, id desc limit ?"
    return [name for (name,) in session.run(found, most)]


def has(session: Session, name: str) -> bool:
    """Whether there is a sandbox of a name that has not expired."""
    found = "select 1 from sandboxes where name = ? and (expires_at is null or expires_at > ?)"
    return bool(session.run(found, name, wall_ms()))


def sandbox_with(session: Session, key: str) -> str | None:
    """The name of the sandbox that an API key belongs to."""
    found = "select name from sandboxes where id = (select sandbox from credentials where credential = ?)"
    return next((name for (name,) in session.run(found, key)), None)


def untidy(session: Session, holder: int) -> set[int]:
    """The sandboxes with data that may no longer be needed: deleted ones, and those of `holder`."""
    found = session.run("select id from sandboxes where name is null or holder = ?", holder)
    return {number for (number,) in found}


def summary(session: Session, name: str) -> Body:
    """What lists show of a sandbox, and its generation, as it was last stored."""
    ((text, generation),) = session.run("select summary, generation from sandboxes where name = ?", name)
    return {**orjson.loads(text), "generation": generation}


def rows_of_sandboxes(session: Session) -> list[tuple[Any, ...]]:
    """The rows of all sandboxes, in the order in which they were made: number, what `Kept` has, and the sum."""
    return session.run(f"select id, {_ROW}, sum from sandboxes where name is not null order by id")  # noqa: S608 - no values


def sandbox(session: Session, number: int) -> Kept:
    """A sandbox. Raises Damage."""
    rows = session.run(f"select id, {_ROW}, sum from sandboxes where id = ?", number)  # noqa: S608 - no values
    if not rows:
        raise Damage("its row is not there")
    return sandbox_of(rows[0])[1]


def sandbox_of(row: tuple[Any, ...]) -> tuple[int, Kept]:
    """A sandbox and its number. Raises Damage."""
    return row[0], Kept(*checked(f"the row of the sandbox {str(row[1])[:80]!r}", row[1:]))


def rows_of_snapshots(session: Session, sandbox: int) -> list[tuple[Any, ...]]:
    """The rows of a sandbox's snapshots, in the order in which they were made: what `KeptSnapshot` has, and the sum."""
    return session.run(f"select {_SNAPSHOT}, sum from snapshots where sandbox = ? order by id", sandbox)  # noqa: S608 - no values


def snapshot_of(row: tuple[Any, ...]) -> KeptSnapshot:
    """A snapshot. Raises Damage."""
    return KeptSnapshot(*checked("the row of a snapshot", row))


def snapshots(session: Session, sandbox: int, kept: Kept) -> list[KeptSnapshot]:
    """The snapshots of a sandbox, in the order in which they were made. Raises Damage."""
    found = [snapshot_of(row) for row in rows_of_snapshots(session, sandbox)]
    used = session.run("select id from states where sandbox = ? and is_used = 1 order by id", sandbox)
    if [number for (number,) in used] != sorted([kept.state, *(snapshot.state for snapshot in found)]):
        raise Damage("its snapshots are not those that were written")
    return found


def state(session: Session, number: int) -> tuple[KeptState, Iterator[bytes]]:
    """A state, and its lines, of which each raises Damage. Raises Damage."""
    rows = session.run("select sandbox, step, chain, size, sum from states where id = ?", number)
    digests = [row[0] for row in session.run("select digest from state_chunks where state = ? order by place", number)]
    if not rows:
        raise Damage("its state is not there")
    *row, stored_sum = rows[0]
    chunks = b"".join(digest for digest in digests if isinstance(digest, bytes))
    _, step, chain, size, _ = checked("its state", (*row, chunks, stored_sum))
    return KeptState(number, step, chain, size), _lines(session, digests)


def _lines(session: Session, digests: Iterable[bytes]) -> Iterator[bytes]:
    for digest in digests:
        rows = session.run("select body from chunks where digest = ?", digest)
        if not rows:
            raise Damage("a part of its state is not there")
        try:
            chunk = zlib.decompress(rows[0][0])
        except (TypeError, zlib.error):
            chunk = b""
        if digest_of(chunk) != digest:
            raise Damage("a part of its state is damaged")
        yield from chunk.splitlines()


def steps_of(session: Session, sandbox: int, kept: Kept, after: KeptState) -> Iterator[bytes]:
    """The steps of a sandbox since a state, each with the sum that follows from those before. Raises Damage."""
    number, chain = after.step, after.chain
    while number < kept.newest:
        statement = "select place, line, sum from steps where place > ? and place <= ? order by place limit ?"
        rows = session.run(statement, place_of(sandbox, number), place_of(sandbox, kept.newest), AT_ONCE)
        for place, line, stored_sum in rows:
            if place != place_of(sandbox, number + 1):
                break
            if not isinstance(line, bytes) or chained(line, chain) != stored_sum:
                raise Damage(f"step {number + 1} is damaged")
            number, chain = number + 1, stored_sum
            yield line
        if not rows or place != place_of(sandbox, number):
            raise Damage(f"step {number + 1} is not there")
    if chain != kept.chain:
        raise Damage(f"step {number} is another than was written")


def known(session: Session, numbers: Iterable[int], holder: int) -> Known:
    """What the store has of those of the sandboxes that `holder` has."""
    statement = (
        "select newest, sandboxes.chain, states.id, step, states.chain, size "
        "from sandboxes join states on states.id = state where sandboxes.id = ? and name is not null and holder = ?"
    )
    found = ((number, row) for number in numbers for row in session.run(statement, number, holder))
    return {number: (newest, chain, KeptState(*columns)) for number, (newest, chain, *columns) in found}


# -- writing


def reserve(session: Session, step: int, holder: int) -> int:
    """A number for a sandbox that is being created: its row has no name until the sandbox is committed."""
    nobody = (*Kept(None, None, 0, 0, None, "", 0, None, "", 0, "", step, 0, 0, None, ""), 0, holder)
    places = ", ".join("?" * len(nobody))
    ((number,),) = session.run(f"insert into sandboxes ({_ROW}, sum, holder) values ({places}) returning id", *nobody)  # noqa: S608 - no values
    return int(number)


def write_state(session: Session, sandbox: int, step: int, chain: int, chunks: Iterable[bytes]) -> KeptState:
    """Write the state of a sandbox after a step, which nothing refers to yet."""
    statement = "insert into states (sandbox, is_used, step, chain, size, sum) values (?, 0, ?, ?, 0, 0) returning id"
    ((number,),) = session.run(statement, sandbox, step, chain)
    size, digests = 0, []
    for place, chunk in enumerate(chunks):
        digest = digest_of(chunk)
        # Outside of the transaction, which must not wait until a whole chunk is compressed.
        body = None if session.run("select 1 from chunks where digest = ?", digest) else zlib.compress(chunk, _SPEED)
        with session.transaction():  # a chunk that nothing refers to may be deleted at any time
            if body is not None or not session.run("select 1 from chunks where digest = ?", digest):
                statement = "insert into chunks values (?, ?) on conflict do nothing"
                session.run(statement, digest, body or zlib.compress(chunk, _SPEED))
            session.run("insert into state_chunks values (?, ?, ?)", number, place, digest)
        digests.append(digest)
        size += len(chunk)
    stored_sum = sum_of(sandbox, step, chain, size, b"".join(digests))
    session.run("update states set size = ?, sum = ? where id = ?", size, stored_sum, number)
    return KeptState(number, step, chain, size)


def commit(session: Session, batch: Batch, holder: int) -> set[int]:
    """Commit a batch; returns the numbers of sandboxes that `holder` does not have, or not with that newest step."""
    whose = "id = ? and name is not null and newest = ? and holder = ?"
    update = f"update sandboxes set {_SET} where {whose} returning id"  # noqa: S608 - no values
    lost = set()
    with suppress(_Lost), session.transaction():
        for number in batch.ends:
            statement, values = ended(number, holder)
            if not session.run(statement, *values):
                lost.add(number)
        for statement, values in batch.changes:
            session.run(statement, *values)
        for number, newest, kept in batch.rows:
            if not session.run(update, *kept[1:], sum_of(*kept), number, newest, holder):
                lost.add(number)
        if lost and batch.is_atomic:
            raise _Lost
        steps = batch.steps if not lost else [step for step in batch.steps if step[0] >> STEPS not in lost]
        if steps:
            session.many("insert into steps values (?, ?, ?)", steps)
    return lost


def ended(number: int, holder: int) -> Statement:
    """Delete a sandbox, if `holder` has it. Its data is deleted later, by `tidying`."""
    whose = "id = ? and name is not null and holder = ?"
    return f"update sandboxes set name = null, sum = 0 where {whose} returning id", (number, holder)  # noqa: S608 - no values


def entered(number: int, name: str, state: int) -> list[Statement]:
    """Give a sandbox a name, unless one that has not expired has it, and a state. The rest of its row follows."""
    expired = "update sandboxes set name = null, sum = 0 where name = ? and expires_at <= ?"
    return [
        (expired, (name, wall_ms())),
        ("update sandboxes set name = ? where id = ?", (name, number)),
        state_used(state),
    ]


def released(number: int, holder: int) -> Statement:
    """No process has a sandbox: the next one that is asked for it opens it at once."""
    return "update sandboxes set holder = 0 where id = ? and holder = ?", (number, holder)


def key_entered(key: str, sandbox: int) -> Statement:
    """An API key belongs to a sandbox, unless an earlier one has it: a copy takes no keys from its parent."""
    statement = (
        "insert into credentials values (?, ?) on conflict (credential) do update set sandbox = excluded.sandbox "
        "where not exists (select 1 from sandboxes where id = credentials.sandbox and name is not null)"
    )
    return statement, (key, sandbox)


def state_used(number: int) -> Statement:
    """Something refers to a state."""
    return "update states set is_used = 1 where id = ?", (number,)


def state_replaced(before: int, number: int) -> list[Statement]:
    """Replace a state by another one."""
    return [("update states set is_used = 0 where id = ?", (before,)), state_used(number)]


def snapshot_ended(sandbox: int, name: str) -> list[Statement]:
    """Delete a snapshot, if it is there."""
    which = "sandbox = ? and name = ?"
    return [
        (f"update states set is_used = 0 where id in (select state from snapshots where {which})", (sandbox, name)),  # noqa: S608 - no values
        (f"delete from snapshots where {which}", (sandbox, name)),  # noqa: S608 - no values
    ]


def snapshot_entered(sandbox: int, kept: KeptSnapshot) -> list[Statement]:
    """A snapshot, in place of the one of its name."""
    places = ", ".join("?" * (len(kept) + 2))
    statement = f"insert into snapshots (sandbox, {_SNAPSHOT}, sum) values ({places})"  # noqa: S608 - no values
    return [
        *snapshot_ended(sandbox, kept.name),
        (statement, (sandbox, *kept, sum_of(*kept))),
        state_used(kept.state),
    ]


# -- deleting what is no longer needed


def tidying(session: Session, store: Database, numbers: Iterable[int], writing: Collection[int]) -> Iterator[None]:
    """Delete what some sandboxes no longer refer to, with a pause after each part.

    Of those that are among `writing`, states are written to which nothing refers yet. Other processes do so for theirs.
    """
    # No process has one without a name from now on: a process that reserved it and was stopped cannot enter it.
    ours = (
        "update sandboxes set holder = case when name is null then -1 else holder end "  # noqa: S608 - no values
        f"where id = ? and (holder = ? or name is null and holder not in ({store.living})) returning name, state"
    )
    for number in numbers:
        if number in writing:
            continue
        with session.transaction():
            found = session.run(ours, number, store.holder)
            is_unused = "is_used = 0" if found else "sandbox not in (select id from sandboxes)"
            session.run(f"delete from states where sandbox = ? and {is_unused}", number)  # noqa: S608 - no values
        if not found:
            continue
        is_ended = found[0][0] is None
        ((last,),) = session.run("select coalesce(max(step), 0) from states where id = ?", found[0][1])
        first, last = place_of(number, 0), place_of(number, (1 << STEPS) - 1 if is_ended else last)
        some = "select place from steps where place >= ? and place <= ? order by place limit ?"
        while rows := session.run(some, first, last, AT_ONCE):
            session.run("delete from steps where place >= ? and place <= ?", first, rows[-1][0])
            yield
        if is_ended:
            with session.transaction():
                session.run("delete from sandboxes where id = ?", number)
                for table in ("snapshots", "states", "credentials"):
                    session.run(f"delete from {table} where sandbox = ?", number)  # noqa: S608 - no values
        yield
    unused = (
        "select digest from chunks "
        "where not exists (select 1 from state_chunks where state_chunks.digest = chunks.digest) limit 16"
    )
    while session.run(unused):
        session.run(f"delete from chunks where digest in ({unused})")  # noqa: S608 - no values
        yield
