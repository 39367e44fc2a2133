"""Environments and wrong starts: each ends in service, or in one clear line and exit code 2, never
in a traceback.
"""

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import click
import pytest

from stub_server.cli.command import main

from ..support.forked import run
from ..support.processes import ready

pytestmark = pytest.mark.check

COMMAND = [sys.executable, "-m", "stub_server"]
PATIENCE = 60
EMPTY = ("--port", "0", "--scenario", "empty")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("STUB_")}


def shell(script: str) -> tuple[str, ...]:
    """A command that runs another as the shell does at the end of a script."""
    return ("sh", "-c", f'{script}exec "$@"', "sh")


def redirected(files: str) -> tuple[str, ...]:
    """The same, with other standard files."""
    return ("sh", "-c", f'exec "$@" {files}', "sh")


def without(module: str) -> tuple[str, ...]:
    """The command where a package is not installed."""
    code = (
        f"import sys; sys.modules[{module!r}] = None; from stub_server.__main__ import run; run()"
    )
    return (sys.executable, "-c", code)


# -- what is refused


class Wrong(NamedTuple):
    """A start that cannot be, and what is said of it."""

    args: Sequence[str]
    says: str
    env: Mapping[str, str | None] = {}
    before: Sequence[str] = ()
    command: Sequence[str] = COMMAND
    verb: Sequence[str] = ("serve", *EMPTY)


VARIABLES = {
    "STUB_HOST": "203.0.113.1",
    "STUB_PORT": "tcp://10.0.0.1:4600",
    "STUB_BASE_URL": "sandbox",
    "STUB_SEED": "forty-two",
    "STUB_SCENARIO": "nowhere",
    "STUB_NOW": "tomorrow",
    "STUB_OVERLAY": "missing.yaml",
    "STUB_AUTH": "none",
    "STUB_UNKNOWN_FIELDS": "warn",
    "STUB_UNKNOWN_QUERY": "ignore",
    "STUB_CHECK_DIGITS": "perhaps",
    "STUB_AUTOPAY": "-1",
    "STUB_WEBHOOK_SCHEDULE": "slow",
    "STUB_HISTORY": "all",
    "STUB_JOURNAL": "1e3",
    "STUB_STORE": "mysql://db",
    "STUB_SYNC": "never",
    "STUB_RESTORE": "missing.sandbox",
    "STUB_ALLOW_HOST": "http://dev.box",
    "STUB_ALLOW_PRIVATE_WEBHOOKS": "perhaps",
    "STUB_MAX_CONNECTIONS": "0",
    "STUB_RATE_LIMIT": "many",
    "STUB_LOG": "loud",
    "STUB_READY_FILE": "missing/ready.json",
    "STUB_STOP_AFTER_IDLE": "0",
    "STUB_RELOAD": "perhaps",
    "STUB_MAX_STREAMS": "0",
    "STUB_WEBHOOK_CACERT": "missing.pem",
    "STUB_STOP_ON_EOF": "perhaps",
    "STUB_FORWARDED_ALLOW_IPS": "everybody",
}
"""A wrong value of each variable."""
ANY_TEXT = {"STUB_CORS_ORIGIN", "STUB_ADMIN_KEY", "STUB_JWT_SECRET"}
"""The variables whose every value is a right one."""

WRONG = {
    "port-beyond": Wrong(["--port", "99999"], "99999 is not in the range 0<=x<=65535"),
    "admin-key-question-mark": Wrong(["--admin-key", "quem?sou-eu"], "other than space"),
    "admin-key-not-ascii": Wrong(["--admin-key", "não-é-segura"], "printable ASCII"),
    "now-no-instant": Wrong(["--now", "tomorrow"], "2026-11-20T14:32:05Z"),
    "now-without-an-offset": Wrong(["--now", "2026-11-20T14:32:05"], "offset"),
    "now-too-early": Wrong(["--now", "1969-12-31T23:59:59Z"], "between 1970 and 8999"),
    "host-empty": Wrong(["--host", ""], "Give --host a name or address of this machine."),
    "host-of-another-machine": Wrong(["--host", "203.0.113.1"], "no such address. Give --host"),
    "host-no-name": Wrong(["--host", f"{'a' * 64}.example"], "--host is no name that a machine can have."),
    "base-url-bare": Wrong(["--base-url", "sandbox.example"], "not an address"),
    "base-url-query": Wrong(["--base-url", "https://sandbox.example/?a=b"], "has a query"),
    "base-url-empty": Wrong(["--base-url", ""], "not an address"),
    "store-empty": Wrong(["--store", ""], "the path is empty"),
    "store-unknown": Wrong(["--store", "mysql://u:secret@db"], "a store is memory, a directory or postgresql://"),
    "store-file": Wrong(["--store", "file"], "--store file: "),
    "store-below-a-file": Wrong(["--store", "file/store"], "--store file/store: "),
    "store-unwritable": Wrong(["--store", "/proc/store"], "--store /proc/store: "),
    "store-of-another-program": Wrong(["--store", "foreign"], "--store foreign"),
    "store-unreachable": Wrong(["--store", "postgresql://127.0.0.1:9/db"], "Connection refused"),
    "store-garbled": Wrong(["--store", "postgresql://127.0.0.1:port/db"], "--store postgresql://"),
    "store-no-driver": Wrong(
        ["--store", "postgresql://127.0.0.1:9/db"],
        f"Install it: {sys.executable} -m pip install 'psycopg[binary]'",
        command=without("psycopg"),
    ),
    "store-no-libpq": Wrong(
        ["--store", "postgresql://127.0.0.1:9/db"],
        "python -m pip install 'psycopg[binary]'",
        {"PSYCOPG_IMPL": "binary"},
        command=without("psycopg_binary"),
    ),
    "overlay-missing": Wrong(["--overlay", "missing.yaml"], "'missing.yaml' does not exist"),
    "overlay-in-the-home": Wrong(["--overlay", "~/missing.yaml"], "'/nowhere/missing.yaml'", {"HOME": "/nowhere"}),
    "overlay-directory": Wrong(["--overlay", "."], "is a directory"),
    "overlay-bad-yaml": Wrong(["--overlay", "bad.yaml"], "bad.yaml:3"),
    "overlay-something-else": Wrong(["--overlay", "list.yaml"], "list.yaml"),
    "overlay-bytes": Wrong(["--overlay", "bytes"], "bytes"),
    "scenario-unknown": Wrong(["--scenario", "nowhere"], "There is no scenario 'nowhere'"),
    "scenario-missing": Wrong(["--scenario", "./missing.yaml"], "missing.yaml"),
    "scenario-bad-yaml": Wrong(["--scenario", "./bad.yaml"], "bad.yaml:3"),
    "scenario-directory": Wrong(["--scenario", "./"], "Error: .: is not a regular file"),
    "scenario-bytes": Wrong(["--scenario", "./bytes"], "bytes"),
    "restore-missing": Wrong(["--restore", "missing.sandbox"], "'missing.sandbox' does not exist"),
    "restore-garbage": Wrong(["--restore", "bytes"], "--restore bytes: it cannot be used."),
    "restore-directory": Wrong(["--restore", "."], "is a directory"),
    "ready-file-nowhere": Wrong(["--ready-file", "missing/ready.json"], "missing/ready.json: No such file"),
    "ready-file-empty": Wrong(["--ready-file", ""], "the path is empty"),
    "ready-file-unwritable": Wrong(["--ready-file", "/proc/ready.json"], "--ready-file /proc/ready.json: "),
    "flag-unknown": Wrong(["--prot", "0"], "No such option"),
    "flag-without-value": Wrong(["--port"], "requires an argument"),
    "verb-unknown": Wrong([], "No such command 'srve'", verb=["srve"]),
    "argument": Wrong(["4600"], "unexpected extra argument"),
    "no-directory": Wrong(
        ["--store", "store"], "--store store: ", before=shell('mkdir gone; cd gone; rmdir "$PWD"; ')
    ),
    "encoding-without-the-letter": Wrong(
        ["--overlay", "ł.yaml"], r"'\u0142.yaml'", {"PYTHONIOENCODING": "latin-1"}
    ),
    "bytes-of-no-text": Wrong(["--overlay", os.fsdecode(b"\xff.yaml")], "does not exist"),
    "warnings-are-errors": Wrong(["--scenario", "nowhere"], "There is no scenario", {"PYTHONWARNINGS": "error"}),
    "no-docstrings": Wrong(["--scenario", "nowhere"], "There is no scenario", {"PYTHONOPTIMIZE": "2"}),
    "rule-from-closed-input": Wrong(
        [], "Give JSON, @FILE", before=redirected("<&-"), verb=["faults", "add", "-"]
    ),
    "closed-input": Wrong(["--port", "http"], "not a valid integer", before=redirected("<&-")),
    "closed-output": Wrong(["--port", "http"], "not a valid integer", before=redirected(">&-")),
}  # fmt: skip
WRONG |= {name.lower(): Wrong([], name, {name: value}) for name, value in VARIABLES.items()}


FILES = {"file", "bytes", "bad.yaml", "list.yaml", "foreign"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with files of all kinds."""
    (tmp_path / "file").write_text("text\n")
    (tmp_path / "bytes").write_bytes(b"\xff\x00\xfe")
    (tmp_path / "bad.yaml").write_text("a: 1\nb: [\n")
    (tmp_path / "list.yaml").write_text("- 1\n- 2\n")
    (tmp_path / "foreign").mkdir(mode=0o700)
    with sqlite3.connect(tmp_path / "foreign" / "sandboxes.sqlite") as database:
        database.execute("create table notes (id integer primary key)")
    database.close()
    return tmp_path


def environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """That of this process without settings of servers; None removes a variable."""
    return {name: value for name, value in {**CLEAN, **changes}.items() if value is not None}


def refused(said: "subprocess.CompletedProcess[str]") -> str:
    """The one line that says why a start was refused."""
    assert 2 == said.returncode, said
    assert "" == said.stdout
    assert "Traceback" not in said.stderr, said.stderr
    *usage, line = said.stderr.splitlines()
    assert line.startswith(("Error: ", "  ")), said.stderr
    assert all(re.match(r"(Usage: |Try |Error: |  |$)", each) for each in usage), said.stderr
    return said.stderr


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.matrix
def test_what_cannot_start_says_why(name: str, folder: Path) -> None:
    wrong = WRONG[name]
    args = (
        ["serve", *wrong.args]
        if {"STUB_PORT", "STUB_SCENARIO"} & wrong.env.keys()
        else [*wrong.verb, *wrong.args]
    )
    said = refused(
        run(
            [*wrong.before, *wrong.command, *args],
            cwd=folder,
            env=environment(wrong.env),
            timeout=PATIENCE,
        )
    )
    assert wrong.says in said
    assert "secret" not in said
    assert FILES == {each.name for each in folder.iterdir()}


def test_the_table_has_every_variable() -> None:
    serve = main.commands["serve"]
    context = click.Context(serve, info_name="serve", **serve.context_settings)
    known = {
        option.envvar or f"{context.auto_envvar_prefix}_{str(option.name).upper()}"
        for option in serve.params
    }
    assert known == VARIABLES.keys() | ANY_TEXT


# -- what is served


class Strange(NamedTuple):
    """An environment in which a server serves."""

    args: Sequence[str] = ()
    env: Mapping[str, str | None] = {}
    before: Sequence[str] = ()


ASCII = {"LC_ALL": "C", "LANG": None, "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}

STRANGE = {
    "plain": Strange(),
    "warnings-are-errors": Strange(env={"PYTHONWARNINGS": "error"}),
    "no-docstrings": Strange(env={"PYTHONOPTIMIZE": "2"}),
    "locale-c": Strange(env={"LC_ALL": "C"}),
    "locale-unset": Strange(env={"LC_ALL": None, "LC_CTYPE": None, "LANG": None}),
    "locale-unknown": Strange(env={"LC_ALL": "xx_XX.nonsense"}),
    "ascii": Strange(env=ASCII),
    "output-ascii": Strange(env={"PYTHONIOENCODING": "ascii"}),
    "output-latin-1": Strange(env={"PYTHONIOENCODING": "latin-1"}),
    "no-home": Strange(env={"HOME": None}),
    "home-nowhere": Strange(env={"HOME": "/nowhere"}),
    "dumb-terminal": Strange(env={"TERM": "dumb", "FORCE_COLOR": "1"}),
    "no-columns": Strange(env={"COLUMNS": "0"}),
    "columns-of-no-number": Strange(env={"COLUMNS": "wide", "LINES": "-1"}),
    "time-zone-unknown": Strange(env={"TZ": "Nowhere/Land"}),
    "time-zone-far": Strange(env={"TZ": "Pacific/Kiritimati"}),
    "no-temporary-directory": Strange(env={"TMPDIR": "/nowhere"}),
    "no-path": Strange(env={"PATH": ""}),
    "no-byte-code": Strange(env={"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}),
    "proxy-unreachable": Strange(env={"http_proxy": "http://127.0.0.1:9", "all_proxy": "socks5://127.0.0.1:9"}),
    "empty-variables": Strange(env={"STUB_STORE": "", "STUB_HOST": "", "STUB_ADMIN_KEY": "", "STUB_OVERLAY": ""}),
    "variables-of-a-cluster": Strange(env={"STUB_SERVICE_HOST": "10.0.0.1", "STUB_PORT_80_TCP": "tcp://10.0.0.1:80"}),
    "directory-unwritable": Strange(before=shell("cd /proc; ")),
    "directory-gone": Strange(before=shell('mkdir gone; cd gone; rmdir "$PWD"; ')),
    "no-rights-for-new-files": Strange(before=shell("umask 777; ")),
    "limit-of-files-low": Strange(before=shell("ulimit -Sn 64; ")),
    "stack-small": Strange(before=shell("ulimit -s 1024; ")),
    "hang-ups-ignored": Strange(before=shell("trap '' HUP; ")),
    "interrupts-ignored": Strange(before=shell("trap '' INT; ")),
    "input-closed": Strange(before=redirected("<&-")),
    "output-closed": Strange(before=redirected(">&-")),
    "errors-closed": Strange(before=redirected("2>&-")),
    "all-closed": Strange(before=redirected("<&- >&- 2>&-")),
    "all-closed-with-a-store": Strange(["--store", "store"], before=redirected("<&- >&- 2>&-")),
    "output-full": Strange(before=redirected(">/dev/full")),
    "errors-full": Strange(["--log", "requests"], before=redirected("2>/dev/full")),
    "store-in-the-home": Strange(["--store", "~/store"], {"HOME": "."}),
    "store-with-spaces": Strange(["--store", "um espaço, e ção"]),
    "host-ipv4": Strange(["--host", "127.0.0.1"]),
    "host-ipv6": Strange(["--host", "::1"]),
    "host-every-ipv6": Strange(["--host", "::", "--admin-key", "k"]),
    "host-every-ipv4": Strange(["--host", "0.0.0.0", "--admin-key", "k"]),  # noqa: S104 - asked for
    "host-name": Strange(["--host", "localhost"]),
}  # fmt: skip


@contextmanager
def started(
    folder: Path,
    *args: str,
    env: Mapping[str, str | None] | None = None,
    before: Sequence[str] = (),
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A server in a folder, and its address once it answers."""
    command = [*before, *COMMAND, "serve", *EMPTY, "--log", "quiet", *args]
    with ready(
        folder / "ready.json",
        *command,
        cwd=folder,
        env=environment(env or {}),
        stdout=subprocess.PIPE,
        errors="replace",
    ) as (process, said):
        yield process, said["url"]


def answers(url: str) -> bool:
    """Whether a server answers at an address."""
    parts = urlsplit(url)
    connection = HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
    try:
        connection.request("GET", "/_sandbox/health")
        return connection.getresponse().status == 200
    except ConnectionRefusedError:
        return False
    finally:
        connection.close()


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.matrix
def test_what_can_start_serves(name: str, tmp_path: Path) -> None:
    strange = STRANGE[name]
    with started(tmp_path, *strange.args, env=strange.env, before=strange.before) as (process, url):
        assert answers(url)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE)
    assert (0, "") == (process.returncode, said)
    assert not (tmp_path / "ready.json").exists()
    assert "store-in-the-home" != name or (tmp_path / "store").is_dir()


# -- addresses


HAS_IPV6 = Path("/proc/net/if_inet6").exists() and "lo" in Path("/proc/net/if_inet6").read_text()
of_both_families = pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6")


def both(url: str) -> tuple[bool, bool]:
    """Whether a server answers at the port of an address by IPv4, and by IPv6."""
    port = url.rpartition(":")[2]
    return answers(f"http://127.0.0.1:{port}"), answers(f"http://[::1]:{port}")


@of_both_families
@pytest.mark.parametrize(
    ("host", "served"),
    [
        ([], (True, True)),
        (["--host", "::"], (True, True)),
        (["--host", "127.0.0.1"], (True, False)),
        (["--host", "::1"], (False, True)),
        (["--host", "0.0.0.0"], (True, False)),  # noqa: S104 - asked for
    ],
)
def test_a_server_listens_where_it_is_told_to(
    host: list[str], served: tuple[bool, bool], tmp_path: Path
) -> None:
    with started(tmp_path, *host) as (_, url):
        assert served == both(url)
        assert answers(url)


@of_both_families
def test_a_server_that_restarts_on_changes_listens_and_stops_as_others_do(tmp_path: Path) -> None:
    with started(tmp_path, "--reload") as (process, url):
        try:
            assert (True, True) == both(url)
        finally:
            process.send_signal(signal.SIGHUP)
            _, said = process.communicate(timeout=PATIENCE)
    assert (0, "") == (process.returncode, said)
    assert not (tmp_path / "ready.json").exists()


# -- ends


@pytest.mark.parametrize(
    ("signals", "by"),
    [
        ([signal.SIGINT, signal.SIGINT], "SIGINT"),
        ([signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP], "SIGINT"),
        ([signal.SIGHUP], "SIGHUP"),
        ([signal.SIGTERM, signal.SIGINT], "SIGTERM"),
    ],
)
def test_a_server_stops_in_order_however_often_it_is_told_to(
    signals: list[signal.Signals], by: str, tmp_path: Path
) -> None:
    """The log of SQLite is gone when a store has been closed."""
    with started(tmp_path, "--store", "store", "--log", "requests") as (process, url):
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as stream:
            stream.sendall(b"GET /_sandbox/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert stream.recv(100).startswith(b"HTTP/1.1 200 ")
            for number in signals:
                process.send_signal(number)
                time.sleep(0.05)
            _, said = process.communicate(timeout=PATIENCE)
    *requests, last = said.splitlines()
    assert (0, f"Stopped by {by}.") == (process.returncode, last)
    assert all(" GET " in line for line in requests), said
    assert not (tmp_path / "ready.json").exists()
    assert {"lock", "sandboxes.sqlite"} == {file.name for file in (tmp_path / "store").iterdir()}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "moment", ["import click", "import stub_server.app", "opens the store", "shows the banner"]
)
@pytest.mark.matrix
def test_a_start_that_is_interrupted_ends_in_silence(
    number: signal.Signals, moment: str, tmp_path: Path
) -> None:
    """Whenever it is, with the exit code that a shell gives to the signal, or 0 for a server that
    is ready to serve.
    """
    code = INTERRUPTED.format(number=int(number), moment=moment)
    command = [
        sys.executable,
        "-c",
        code,
        "serve",
        *EMPTY,
        "--store",
        "store",
        "--ready-file",
        "ready.json",
    ]
    env = environment({})
    ended = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE
    )
    served = moment == "shows the banner"
    code_of_shell = ended.returncode if ended.returncode >= 0 else 128 - ended.returncode
    assert (0 if served else 128 + number) == code_of_shell, ended
    assert (f"Stopped by {number.name}.\n" if served else "") == ended.stderr
    assert {each.name for each in tmp_path.iterdir()} <= {"store"}
    assert not any(tmp_path.glob("store/*-wal"))


INTERRUPTED = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs the tests in the background ignores it

class Interrupting:
    def find_spec(self, name, *_):
        if "import " + name == {moment!r}:
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Interrupting())
if {moment!r} == "opens the store":
    import stub_server.app
    served = stub_server.app._served
    stub_server.app._served = lambda *args: (os.kill(os.getpid(), {number}), served(*args))[1]
if {moment!r} == "shows the banner":
    import stub_server.cli.banner
    stub_server.cli.banner.show = lambda *_: os.kill(os.getpid(), {number})
from stub_server.__main__ import run
run()
"""
"""A command that gets a signal at a moment of its start."""
