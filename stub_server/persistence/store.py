"""What SQLite and PostgreSQL have in common: the statements. Each of the two says how they are sent.

Everything here takes a session, which any thread may have. Reading checks what is read, and raises Damage.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ..files.state import WorldState
from ..kernel.clock import wall_ms
from ..version import __version__
from .chunks import chunks_of, packed, unpacked
from .rows import (
    FORMAT,
    STEPS,
    TABLES,
    Damage,
    Kept,
    KeptSnapshot,
    KeptState,
    StoreError,
    chained,
    checked,
    digest_of,
    place_of,
    sum_of,
    sum_of_state,
)

LOT = 200  # steps that are read or deleted at once
_HEAD = ", ".join(Kept._fields)
_SNAPSHOT = ", ".join(KeptSnapshot._fields)
_SET = ", ".join(f"{name} = ?" for name in (*Kept._fields[1:], "sum"))

_STRAY_STEPS = (
    f"select count(*) from (select distinct place >> {STEPS} as sandbox from steps) as found "  # noqa: S608
    "where sandbox not in (select id from sandboxes)"
)

DUE = "select name from sandboxes where name is not null and (next_due <= ? or expires_at <= ?)"

Statement = tuple[str, tuple[Any, ...]]


class Session(Protocol):
    """A connection. What it raises is in the `errors` of its store."""

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement whose places are `?`; answers its rows."""

    def many(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement once for each row."""

    def transaction(self) -> AbstractContextManager[None]:
        """All of the block or nothing."""

    def close(self) -> None:
        """Let the connection go."""


class Head(NamedTuple):
    """The row of a sandbox: its number, the number of its newest step in the store, and the row as it is to be."""

    number: int
    newest: int
    kept: Kept


class Held(NamedTuple):
    """A sandbox's number, and the address of the server that has it; None where it is this one."""

    number: int
    address: str | None


class Listed(NamedTuple):
    """What lists show of a sandbox. Times are ms of the machine; `summary` is JSON."""

    name: str
    parent: str | None
    newest: int
    created_at: int
    last_used_at: int
    expires_at: int | None
    summary: str


@dataclass(slots=True)
class Batch:
    """What is committed together: `ends` has the numbers of sandboxes that are no more, `heads` are the rows of others
    after these `steps`.

    Where a sandbox is lost, nothing of it is stored; where the batch `is_one`, nothing of that.
    """

    changes: Sequence[Statement] = ()
    heads: list[Head] = field(default_factory=list)
    steps: list[tuple[int, bytes, int]] = field(default_factory=list)
    is_one: bool = False
    ends: Sequence[int] = ()


class _Lost(Exception):
    """Undoes a transaction."""


class Store(Protocol):
    """A database with the tables of `rows`."""

    name: str  # as messages say it: --store and its value
    advice: str  # what to do where it is damaged
    is_shared: bool  # whether other servers use it too

    epoch: int  # higher at every start, by more than the process counts from there

    living: str  # the numbers of processes that may have sandboxes, in SQL

    @property
    def holder(self) -> int:
        """The number of this process among those of the store."""

    errors: type[Exception]

    def secret(self, fresh: bytes) -> bytes:
        """The random bytes that servers of this store sign with; `fresh` in a new one. Raises Damage."""

    def session(self) -> Session:
        """A new connection. Raises one of `errors`."""

    def is_taken(self, error: Exception) -> bool:
        """Whether one of `errors` says that a name is taken."""

    def reason(self, error: Exception) -> str:
        """What clients are told of an error; the log has it whole."""

    def start(self, lost: Callable[[], None]) -> None:
        """Begin what goes on beside, on the event loop that runs. `lost` lets go of all sandboxes of this process."""

    async def commit(self, batch: Batch) -> Collection[int]:
        """Commit; answers the numbers of sandboxes that another process has, of which nothing was stored.

        Raises one of `errors`: whether it is there, `known` says.
        """

    async def known(self, numbers: Iterable[int]) -> dict[int, tuple[int, int, KeptState]]:
        """The newest step of each sandbox that is this process's, its sum, and the state. Raises one of `errors`."""

    def claim(self, session: Session, name: str) -> Held | None:
        """Have a sandbox be this process's, unless one that lives has it. None where there is no such sandbox."""

    def due(self, now: int, session: Session) -> list[str]:
        """The names of some sandboxes whose deliveries are due at an instant (ms) and that no other process has."""

    @property
    def lease_left(self) -> float | None:
        """For how many seconds no other process takes sandboxes of this one over, None for ever."""

    def close(self) -> None:
        """Have everything on the disk, and let the database go."""


# -- the whole store


def begin(session: Session, columns: dict[str, str]) -> None:
    """Make the tables of a new store; `columns` says what types are called."""
    for statement in TABLES.format(**columns).split(";\n"):
        if statement.strip():
            session.run(statement)
    set_fact(session, "format", str(FORMAT))


def facts(session: Session) -> dict[str, str]:
    """What stands in `settings`. Raises Damage."""
    rows = session.run("select name, value, sum from settings order by name")
    return dict(checked("a row of settings", row) for row in rows)


def set_fact(session: Session, name: str, value: str) -> None:
    """Write a row of `settings`."""
    statement = "insert into settings values (?, ?, ?) on conflict (name) do update set value = excluded.value, "
    session.run(statement + "sum = excluded.sum", name, value, sum_of(name, value))


def check_format(found: dict[str, str], name: str) -> None:
    """Refuse a store of a newer server. Raises StoreError."""
    told = found.get("format", "")
    if not told.isdecimal():
        raise Damage("its format is not said")
    if int(told) > FORMAT:
        raise StoreError(
            f"{name}: it was written by a newer version of the server: its format is {told}, and this one "
            f"({__version__}) reads up to {FORMAT}."
        )


def secret(session: Session, fresh: bytes) -> bytes:
    """The random bytes that servers of this store sign with; `fresh` from now on in a new one. Raises Damage."""
    with session.transaction():
        told = facts(session).get("secret")
        if told is None:
            if session.run("select 1 from sandboxes limit 1"):
                raise Damage("the secret of its keys and tokens is not there")
            set_fact(session, "secret", fresh.hex())
            return fresh
    return bytes.fromhex(told)


def strangers(session: Session) -> Iterator[str]:
    """Rows that belong to nothing, because others are missing."""
    for what, count in (
        ("rows", "select count(*) from sandboxes where name is null and sum != 0"),
        ("states", "select count(*) from states where sandbox not in (select id from sandboxes)"),
        ("snapshots", "select count(*) from snapshots where sandbox not in (select id from sandboxes)"),
        ("steps", _STRAY_STEPS),
        ("chunks of states", "select count(*) from state_chunks where state not in (select id from states)"),
    ):
        ((number,),) = session.run(count)
        if number:
            yield f"{what} belong to no sandbox ({number})"


# -- reading


def count(session: Session) -> int:
    """How many sandboxes there are, those included that are about to come or to go."""
    ((number,),) = session.run("select count(*) from sandboxes where name is not null")
    return int(number)


def listed(session: Session) -> list[Listed]:
    """Every sandbox, in the order in which they were made."""
    found = f"select {', '.join(Listed._fields)} from sandboxes where name is not null order by created_at, id"  # noqa: S608
    return [Listed(*row) for row in session.run(found)]


def names(session: Session, most: int) -> list[str]:
    """The names of the sandboxes that were used last."""
    found = "select name from sandboxes where name is not null order by last_used_at desc, id desc limit ?"
    return [name for (name,) in session.run(found, most)]


def sandbox_with(session: Session, key: str) -> str | None:
    """The name of the sandbox that an API key is of."""
    found = "select name from sandboxes where id = (select sandbox from credentials where credential = ?)"
    return next((name for (name,) in session.run(found, key)), None)


def untidy(session: Session, holder: int) -> set[int]:
    """The sandboxes of which there may be something that nobody needs: those that are no more, and `holder`'s."""
    found = session.run("select id from sandboxes where name is null or holder = ?", holder)
    return {number for (number,) in found}


def rows_of_sandboxes(session: Session) -> list[tuple[Any, ...]]:
    """The rows of all sandboxes, in the order in which they were made: number, what `Kept` has, and the sum."""
    return session.run(f"select id, {_HEAD}, sum from sandboxes where name is not null order by id")  # noqa: S608


def row_of_sandbox(session: Session, number: int) -> tuple[int, Kept]:
    """A sandbox and its number. Raises Damage."""
    rows = session.run(f"select id, {_HEAD}, sum from sandboxes where id = ?", number)  # noqa: S608
    if not rows:
        raise Damage("its row is not there")
    return sandbox_of(rows[0])


def sandbox_of(row: tuple[Any, ...]) -> tuple[int, Kept]:
    """A sandbox and its number. Raises Damage."""
    return row[0], Kept(*checked(f"the row of the sandbox {str(row[1])[:80]!r}", row[1:]))


def rows_of_snapshots(session: Session, sandbox: int) -> list[tuple[Any, ...]]:
    """The rows of a sandbox's snapshots, in the order in which they were made: what `KeptSnapshot` has, and the sum."""
    return session.run(f"select {_SNAPSHOT}, sum from snapshots where sandbox = ? order by id", sandbox)  # noqa: S608


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


def state(session: Session, number: int) -> tuple[KeptState, list[bytes]]:
    """A state, and the digests of its chunks. Raises Damage."""
    rows = session.run("select sandbox, step, chain, size, sum from states where id = ?", number)
    digests = [row[0] for row in session.run("select digest from state_chunks where state = ? order by place", number)]
    if not rows:
        raise Damage("its state is not there")
    sandbox, step, chain, size, told = rows[0]
    if not all(isinstance(digest, bytes) for digest in digests) or told != sum_of_state(
        sandbox, step, chain, size, digests
    ):
        raise Damage("its state is damaged")
    return KeptState(number, step, chain, size), digests


def lines_of(session: Session, digests: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a state. Raises Damage."""
    for digest in digests:
        rows = session.run("select body from chunks where digest = ?", digest)
        if not rows:
            raise Damage("a part of its state is not there")
        try:
            chunk = unpacked(rows[0][0])
        except (TypeError, ValueError):
            chunk = b""
        if digest_of(chunk) != digest:
            raise Damage("a part of its state is damaged")
        yield from chunk.split(b"\n")


def steps_of(session: Session, sandbox: int, kept: Kept, after: KeptState) -> Iterator[bytes]:
    """The steps of a sandbox since a state, each with the sum that follows from those before. Raises Damage."""
    number, chain = after.step, after.chain
    while number < kept.newest:
        statement = "select place, line, sum from steps where place > ? and place <= ? order by place limit ?"
        rows = session.run(statement, place_of(sandbox, number), place_of(sandbox, kept.newest), LOT)
        for place, line, told in rows:
            if place != place_of(sandbox, number + 1):
                break
            if not isinstance(line, bytes) or chained(line, chain) != told:
                raise Damage(f"step {number + 1} is damaged")
            number, chain = number + 1, told
            yield line
        if not rows or place != place_of(sandbox, number):
            raise Damage(f"step {number + 1} is not there")
    if chain != kept.chain:
        raise Damage(f"step {number} is another than was written")


def known(session: Session, numbers: Iterable[int], holder: int) -> dict[int, tuple[int, int, KeptState]]:
    """The newest step of each sandbox that is `holder`'s, its sum, and the state."""
    found = {}
    for number in numbers:
        statement = (
            "select newest, sandboxes.chain, states.id, step, states.chain, size "
            "from sandboxes join states on states.id = state where sandboxes.id = ? and name is not null and holder = ?"
        )
        for newest, chain, *told in session.run(statement, number, holder):
            found[number] = newest, chain, KeptState(*told)
    return found


# -- writing


def reserve(session: Session, step: int, holder: int) -> int:
    """A number for a sandbox that is about to come with a state: it has a row, and no name until its head is stored."""
    nobody = Kept(None, None, 0, 0, None, "", 0, None, "", 0, step, 0, 0, None, "")
    places = ", ".join("?" * (len(nobody) + 2))
    statement = f"insert into sandboxes ({_HEAD}, sum, holder) values ({places}) returning id"  # noqa: S608
    ((number,),) = session.run(statement, *nobody, 0, holder)
    return int(number)


def begin_state(session: Session, sandbox: int, step: int, chain: int) -> KeptState:
    """A state without chunks, which nothing refers to yet."""
    statement = "insert into states (sandbox, is_used, step, chain, size, sum) values (?, 0, ?, ?, 0, 0) returning id"
    ((number,),) = session.run(statement, sandbox, step, chain)
    return KeptState(number, step, chain, 0)


def write_state(session: Session, sandbox: int, state: WorldState, chain: int) -> KeptState:
    """Write a state that nothing refers to yet."""
    return write_chunks(session, sandbox, begin_state(session, sandbox, state.step, chain), chunks_of(state))


def write_chunks(session: Session, sandbox: int, begun: KeptState, chunks: Iterable[bytes]) -> KeptState:
    """Write the chunks of a state whose row is there."""
    number, step, chain, size = begun
    digests = []
    for place, chunk in enumerate(chunks):
        digest = digest_of(chunk)
        # Outside of the transaction: nobody waits for a whole chunk to be compressed.
        body = None if session.run("select 1 from chunks where digest = ?", digest) else packed(chunk)
        with session.transaction():  # a chunk that nothing refers to may be deleted at any time
            if body is not None or not session.run("select 1 from chunks where digest = ?", digest):
                statement = "insert into chunks values (?, ?) on conflict do nothing"
                session.run(statement, digest, body or packed(chunk))
            session.run("insert into state_chunks values (?, ?, ?)", number, place, digest)
        digests.append(digest)
        size += len(chunk)
    told = sum_of_state(sandbox, step, chain, size, digests)
    session.run("update states set size = ?, sum = ? where id = ?", size, told, number)
    return KeptState(number, step, chain, size)


def commit(session: Session, batch: Batch, holder: int) -> set[int]:
    """Commit a batch; answers the numbers of sandboxes that are not `holder`'s, or not as he left them."""
    whose = "id = ? and name is not null and newest = ? and holder = ?"
    head = f"update sandboxes set {_SET} where {whose} returning id"  # noqa: S608
    lost = set()
    with suppress(_Lost), session.transaction():
        for number in batch.ends:
            statement, values = ended(number, holder)
            if not session.run(statement, *values):
                lost.add(number)
        for statement, values in batch.changes:
            session.run(statement, *values)
        for number, newest, kept in batch.heads:
            if not session.run(head, *kept[1:], sum_of(*kept), number, newest, holder):
                lost.add(number)
        if lost and batch.is_one:
            raise _Lost
        steps = batch.steps if not lost else [step for step in batch.steps if step[0] >> STEPS not in lost]
        if steps:
            session.many("insert into steps values (?, ?, ?)", steps)
    return lost


def ended(number: int, holder: int) -> Statement:
    """A sandbox is no more, if it is `holder`'s. What it had is deleted later, by `tidying`."""
    whose = "id = ? and name is not null and holder = ?"
    return f"update sandboxes set name = null, sum = 0 where {whose} returning id", (number, holder)  # noqa: S608


def entered(number: int, name: str, state: int) -> list[Statement]:
    """A sandbox has a name, unless one has it that has not expired, and a state. Its head follows."""
    expired = "update sandboxes set name = null, sum = 0 where name = ? and expires_at <= ?"
    return [
        (expired, (name, wall_ms())),
        ("update sandboxes set name = ? where id = ?", (name, number)),
        state_used(state, is_used=True),
    ]


def released(number: int, holder: int) -> Statement:
    """A sandbox is nobody's: the next process that is asked for it has it at once."""
    return "update sandboxes set holder = 0 where id = ? and holder = ?", (number, holder)


def key_entered(key: str, sandbox: int) -> Statement:
    """An API key is of a sandbox, unless an earlier one has it that is there: a copy takes no keys from its parent."""
    statement = (
        "insert into credentials values (?, ?) on conflict (credential) do update set sandbox = excluded.sandbox "
        "where not exists (select 1 from sandboxes where id = credentials.sandbox and name is not null)"
    )
    return statement, (key, sandbox)


def state_used(number: int, *, is_used: bool) -> Statement:
    """Something refers to a state, or nothing does any more."""
    return "update states set is_used = ? where id = ?", (int(is_used), number)


def snapshot_ended(sandbox: int, name: str) -> list[Statement]:
    """A snapshot is no more, if it is there."""
    which = "sandbox = ? and name = ?"
    return [
        (f"update states set is_used = 0 where id in (select state from snapshots where {which})", (sandbox, name)),  # noqa: S608
        (f"delete from snapshots where {which}", (sandbox, name)),  # noqa: S608
    ]


def snapshot_entered(sandbox: int, kept: KeptSnapshot) -> list[Statement]:
    """A snapshot, in place of the one of its name."""
    places = ", ".join("?" * (len(kept) + 2))
    statement = f"insert into snapshots (sandbox, {_SNAPSHOT}, sum) values ({places})"  # noqa: S608
    return [
        *snapshot_ended(sandbox, kept.name),
        (statement, (sandbox, *kept, sum_of(*kept))),
        state_used(kept.state, is_used=True),
    ]


# -- what nobody needs any more


def tidying(
    session: Session, store: Store, numbers: Iterable[int], sandboxes: Collection[int], states: Collection[int]
) -> Iterator[None]:
    """Delete what some sandboxes do not refer to any more, with a pause after each lot of it.

    `sandboxes` and `states` have the numbers of those that are about to come. Other processes do so for theirs.
    """
    # One that has no name is nobody's from now on: a process that reserved it and was stopped since cannot enter it.
    ours = (
        "update sandboxes set holder = case when name is null then -1 else holder end "  # noqa: S608
        f"where id = ? and (holder = ? or name is null and holder not in ({store.living})) returning name, state"
    )
    for number in numbers:
        if number in sandboxes:
            continue
        with session.transaction():
            found = session.run(ours, number, store.holder)
            if not found:
                continue
            for (state,) in session.run("select id from states where sandbox = ? and is_used = 0", number):
                if state not in states:
                    session.run("delete from states where id = ?", state)
        is_ended = found[0][0] is None
        ((last,),) = session.run("select coalesce(max(step), 0) from states where id = ?", found[0][1])
        first, last = place_of(number, 0), place_of(number, (1 << STEPS) - 1 if is_ended else last)
        some = "select place from steps where place >= ? and place <= ? order by place limit ?"
        while rows := session.run(some, first, last, LOT):
            session.run("delete from steps where place >= ? and place <= ?", first, rows[-1][0])
            yield
        if is_ended:
            with session.transaction():
                for table, column in (
                    ("snapshots", "sandbox"),
                    ("states", "sandbox"),
                    ("credentials", "sandbox"),
                    ("sandboxes", "id"),
                ):
                    session.run(f"delete from {table} where {column} = ?", number)  # noqa: S608
        yield
    unused = "select digest from chunks where digest not in (select digest from state_chunks) limit 16"
    while session.run(unused):
        session.run(f"delete from chunks where digest in ({unused})")  # noqa: S608
        yield
