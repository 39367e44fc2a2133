"""A PostgreSQL database, which many servers use at once: each sandbox is held by one of them.

A process has a lease of ten seconds, which it renews. The row of a sandbox names its holder: a
commit changes that row only while this process is the holder, so that no history can fork. When the
lease of the holder has ended, the first process that is asked for the sandbox takes it over.
"""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from typing import Any, TypeVar
from uuid import uuid4

import orjson
import psycopg

from ..core.log import log
from . import sql
from .address import printable, without_secrets
from .database import Change, Damage, Database, Session, StoreError, Values, one_line

COLUMNS = {"int": "bigint", "bytes": "bytea"}
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
LEASE = 10.0  # seconds
RENEWAL = 2.0
_MIGRATIONS = 0x73747562  # the lock of processes that create or change the tables
_OPTIONS = (
    "-c idle_in_transaction_session_timeout=2000 -c lock_timeout=5000 -c tcp_user_timeout=10000"
)
_PATIENCE = 5  # seconds for a connection
_LONGEST = 8.0  # seconds for a statement: it ends before the lease does
_OWN = """
create table processes (id bigint generated always as identity primary key, address text not null,
    settings text not null, until timestamptz not null);
create index sandboxes_next_due on sandboxes (next_due) where next_due is not null;
create table creations (
    name text primary key, holder bigint not null references processes on delete cascade
);
"""
T = TypeVar("T")


class _Connection(psycopg.Connection[Any]):
    def wait(self, gen: Generator[Any, Any, T], *rest: Any, **options: Any) -> T:
        """Wait for a statement, but not for ever."""
        return super().wait(_bounded(gen, self.pgconn.finish), *rest, **options)


def _bounded(work: Generator[Any, Any, T], give_up: Callable[[], None]) -> Generator[Any, Any, T]:
    """Waits for psycopg in steps of a tenth of a second: a database that does not answer
    may never close.
    """
    until = time.monotonic() + _LONGEST
    is_ready = None
    while time.monotonic() < until:
        try:
            is_ready = yield work.send(is_ready)
        except StopIteration as end:
            result: T = end.value
            return result
    give_up()
    raise psycopg.OperationalError("the database does not answer")


class PostgresSession:
    """A connection to PostgreSQL. Statements have `?` for their values."""

    def __init__(self, url: str, name: str = "stub-server") -> None:
        with without_secrets(url):
            self._connection = _Connection.connect(
                url,
                autocommit=True,
                connect_timeout=_PATIENCE,
                options=_OPTIONS,
                application_name=name,
            )

    def run(self, statement: str, *values: Any) -> list[Values]:
        cursor = self._connection.execute(statement.replace("?", "%s"), values or None)
        return cursor.fetchall() if cursor.description else []

    def transaction(self) -> AbstractContextManager[object]:
        return self._connection.transaction()

    @property
    def host(self) -> str:
        """This machine as the network of the database knows it, even where addresses are translated
        on the way.
        """
        with socket.socket(fileno=os.dup(self._connection.fileno())) as end:
            if end.family not in (socket.AF_INET, socket.AF_INET6):
                return "127.0.0.1"
            return str(end.getsockname()[0])

    def close(self) -> None:
        self._connection.close()


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class PostgresStore(Database):
    """Many servers use one database.

    A thread renews the lease of this process, whose number is `holder` meanwhile. It counts by a
    clock that also counts while the machine sleeps.
    """

    errors = psycopg.Error
    is_shared = True
    living = "select id from processes where until > clock_timestamp()"
    advice = "Restore the database from a backup."

    def __init__(
        self, url: str, host: str, port: int, seed: int, shared: Mapping[str, str]
    ) -> None:
        """`host` and `port` are what this server listens on, `seed` is that of a database that is
        new.

        `shared` are the settings in which servers should agree. Raises StoreError.
        """
        self._url = url
        self.name = f"--store {printable(url)}"
        self._committer = f"stub-server commits {uuid4()}"  # names the connections that commit
        self._commits: PostgresSession | None = None
        self._bound = (host, port)
        self._shared = orjson.dumps(shared).decode()
        self._until = 0.0  # when the lease ends
        # unloads all sandboxes, and then sets the event
        self._release: Callable[[threading.Event], None] = threading.Event.set
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        try:
            with closing(self.session()) as session:
                self._begin(session, seed)
                self._take_lease(session)
                rows = session.run(
                    "select address, settings from processes where until > clock_timestamp()"
                    " and id != ? order by id",  # the one that has run longest first
                    self.holder,
                )
                self.others = [(address, orjson.loads(settings)) for address, settings in rows]
        except (psycopg.Error, Damage) as error:
            raise StoreError(f"{self.name}: it cannot be used ({one_line(error)}).") from None
        self._thread.start()

    def _begin(self, session: PostgresSession, seed: int) -> None:
        """Create the tables of a new store, or check the present ones. Raises StoreError."""
        with session.transaction():
            session.run("select pg_advisory_xact_lock(?)", _MIGRATIONS)
            if session.run("select to_regclass('settings')") == [(None,)]:
                sql.begin(session, seed, COLUMNS, _OWN)
            self.secret, self.seed = sql.facts(session, self.name)

    def session(self) -> PostgresSession:
        return PostgresSession(self._url)

    def reason(self, error: Exception) -> str:
        """The text of an error for clients, without the reason for a lost connection, which names
        hosts and users.
        """
        message = error.diag.message_primary if isinstance(error, psycopg.Error) else None
        return message or "the database cannot be reached"

    def start(self, lost: Callable[[], None]) -> None:
        """Once it serves: `lost` is called, on its event loop, when the lease ends."""
        loop = asyncio.get_running_loop()

        def release(done: threading.Event) -> None:
            loop.call_soon_threadsafe(lost)
            loop.call_soon_threadsafe(done.set)

        self._release = release

    def _commit(self, changes: Sequence[Change]) -> set[int]:
        if self._commits is None:
            self._commits = PostgresSession(self._url, self._committer)
        return sql.commit(self._commits, changes, self.holder)

    async def recover(self) -> None:
        """End the connections that commit: a commit whose connection was cut may still be
        under way.
        """
        await asyncio.to_thread(self._end_commits)

    def _end_commits(self) -> None:
        commits = self._commits
        self._commits = None
        if commits is not None:
            commits.close()
        with closing(self.session()) as session:
            session.run(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity where"
                " application_name = ?",
                self._committer,
            )

    def claim(self, session: Session, name: str) -> str | None:
        """Take a sandbox for this process, if it is there; returns the address of the running
        process that has it.

        Or of the one that is creating it.
        """
        with session.transaction():
            for number, address in session.run(
                "select id, (select address from processes where id = holder and until >"
                " clock_timestamp()) from sandboxes where name = ? and holder != ? for update",
                name,
                self.holder,
            ):
                if address is not None:
                    return str(address)
                session.run("update sandboxes set holder = ? where id = ?", self.holder, number)
        for (address,) in session.run(
            "select address from creations join processes on id = holder where name = ? and holder"
            " != ? and until > clock_timestamp() and not exists (select 1 from sandboxes where name"
            " = creations.name)",
            name,
            self.holder,
        ):
            return str(address)
        return None

    def announce(self, session: Session, name: str) -> None:
        """Let other processes know that this one is creating a sandbox."""
        session.run(
            "insert into creations values (?, ?) on conflict (name) do update set holder ="
            " excluded.holder",
            name,
            self.holder,
        )

    def end_announcement(self, session: Session, name: str) -> None:
        """Let them know that this one no longer is."""
        session.run("delete from creations where name = ? and holder = ?", name, self.holder)

    @property
    def lease_left(self) -> float:
        """For how many seconds no other process takes over sandboxes of this one."""
        return max(0.0, self._until - _now())

    def close(self) -> None:
        """Give up the sandboxes and the lease."""
        if self._commits is not None:
            self._commits.close()
        self._until = 0.0
        self._done.set()
        self._thread.join(_PATIENCE)

    # -- the lease

    def _take_lease(self, session: PostgresSession) -> None:
        """Take a lease, as a process without sandboxes."""
        before, (host, port) = _now(), self._bound
        if host in EVERYWHERE:
            host = session.host
        if ":" in host:
            host = f"[{host}]"
        ((self.holder,),) = session.run(
            "insert into processes (address, settings, until) "
            "values (?, ?, clock_timestamp() + make_interval(secs => ?)) returning id",
            f"http://{host}:{port}",
            self._shared,
            LEASE,
        )
        session.run("delete from processes where until < clock_timestamp() - interval '1 day'")
        self._until = before + LEASE

    def _renew(self) -> None:
        session: PostgresSession | None = None
        while not self._done.wait(RENEWAL):
            try:
                session = session or self.session()
                before = _now()
                if session.run(
                    "update processes set until = clock_timestamp() + make_interval(secs => ?) "
                    "where id = ? and until > clock_timestamp() returning id",
                    LEASE,
                    self.holder,
                ):
                    self._until = before + LEASE
                else:
                    log.warning(
                        "the lease of this process has ended; it releases its sandboxes and takes a"
                        " new lease"
                    )
                    self._let_go()
                    self._take_lease(session)
            except psycopg.Error as error:
                log.debug("the lease could not be renewed (%s)", error)
                if session is not None:
                    session.close()
                session = None
        with suppress(psycopg.Error):
            session = session or self.session()
            session.run("update sandboxes set holder = 0 where holder = ?", self.holder)
            session.run("delete from processes where id = ?", self.holder)
            session.close()

    def _let_go(self) -> None:
        """Unload all sandboxes, on the event loop, before a new lease begins."""
        done = threading.Event()
        self._release(done)
        while not (done.wait(RENEWAL) or self._done.is_set()):
            pass
