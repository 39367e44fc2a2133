"""`make bench ARGS=--stores`: what the stores cost, and what several servers do."""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table

from stub_server.app import create_app
from stub_server.settings import Settings

from ..engine.inside import Inside
from ..support import postgres
from ..support.processes import Process
from .load import Result, fire
from .start import started
from .world import Shot, shots, token

ROUNDS, SECONDS = 7, 2.0
STEPS = 100_000
LEASE = 10.0  # seconds
KINDS = ("memory", "SQLite", "SQLite, --sync always", "PostgreSQL")
# What the sandbox holds itself to: shares of POST in memory, of GET in memory.
SHARES = {"SQLite": 0.75, "PostgreSQL": 0.45}
QUIET = 0.95


def measure(console: Console, cores: tuple[int, int]) -> list[str]:
    """Measure and show; answers the promises that are not kept."""
    missed: list[str] = []
    table = Table(title="Stores")
    for column in ("what", "measured", "promised"):
        table.add_column(column)

    def row(what: str, measured: str, promised: str = "", *, kept: bool = True) -> None:
        table.add_row(what, measured, promised)
        if not kept:
            missed.append(f"{what}: {measured}, and not {promised}.")

    with tempfile.TemporaryDirectory() as folder, postgres.running(fsync=True) as database:
        with database.database() as url:
            posts, reads = _rates(Path(folder) / "posts", url, cores)
        row("POST in memory", f"{statistics.median(posts[KINDS[0]]):,.0f} a second")
        for kind in KINDS[1:]:
            share, least = _share(posts, kind), SHARES.get(kind)
            row(
                f"POST with {kind}, of that",
                f"{share:.2f}",
                f"at least {least}" if least else "",
                kept=share >= (least or 0),
            )
            share = _share(reads, kind)
            row(f"GET of a sandbox nobody changes, {kind}", f"{share:.2f}", f"at least {QUIET}", kept=share >= QUIET)
        took = statistics.median(_starts(Path(folder) / "steps"))
        row(f"start from {STEPS:,} steps, SQLite", f"{took:.2f} s")
        with database.database() as url:
            killed, stopped = _takeovers(url)
        row("takeover after SIGKILL", f"{killed:.1f} s", f"less than {LEASE + 1:g} s", kept=killed < LEASE + 1)
        row("takeover after SIGTERM", f"{stopped:.2f} s", "less than 1 s", kept=stopped < 1)
        with database.database() as url:
            one, two = _together(url)
        row("GET with one server, and with two on two cores that the load uses too", f"{one:,.0f}, {two:,.0f} a second")
    console.print(table)
    return missed


def _share(rates: dict[str, list[float]], kind: str) -> float:
    return statistics.median(own / plain for own, plain in zip(rates[kind], rates[KINDS[0]], strict=True))


def _rates(folder: Path, url: str, cores: tuple[int, int]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """POSTs and GETs a second of each kind; rounds are interleaved."""
    served, loading = cores
    flags: tuple[tuple[str, ...], ...] = (
        (),
        ("--store", str(folder / "interval")),
        ("--store", str(folder / "always"), "--sync", "always"),
        ("--store", url),
    )
    posts: dict[str, list[float]] = {kind: [] for kind in KINDS}
    reads: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with ExitStack() as stack:
        targets = [stack.enter_context(_serving(more, served)) for more in flags]
        get, post = _shots()
        for port, own in targets:
            fire(post, port, own, 0.5, loading)
        for shot, rates in ((get, reads), (post, posts)):  # after many changes a state is written beside the reads
            for _ in range(ROUNDS):
                for kind, (port, own) in zip(KINDS, targets, strict=True):
                    rates[kind].append(fire(shot, port, own, SECONDS, loading).per_second)
    return posts, reads


def _takeovers(url: str) -> tuple[float, float]:
    """Seconds until another server answers for a sandbox whose server was killed, or has ended in order."""
    with Process("--store", url) as first, Process("--store", url) as second:
        took = []
        for server, other, ends in ((first, second, first.kill), (second, first, second.stop)):
            with server.control("team") as control:
                control.get("/credentials").raise_for_status()
            ends()
            begun = time.perf_counter()
            with other.control("team") as control:
                while control.get("/clock").status_code != 200:
                    time.sleep(0.02)
            took.append(time.perf_counter() - begun)
            server.start()
    return took[0], took[1]


def _together(url: str) -> tuple[float, float]:
    """GETs a second of one server, and of two that have a sandbox each."""
    with Process("--store", url) as first, Process("--store", url) as second, ThreadPoolExecutor(2) as pool:
        asked = []
        for number, server in enumerate((first, second)):
            with server.control(f"team-{number}") as control:
                told = control.get("/credentials").json()
            asked.append((Shot("", "GET", f"/s/team-{number}/v2/customers"), server.port, told["jwt"]))

        def ask(which: int) -> Result:
            shot, port, own = asked[which]
            return fire(shot, port, own, 3 * SECONDS, which)

        return ask(0).per_second, sum(each.per_second for each in pool.map(ask, (0, 1)))


@contextmanager
def _serving(flags: tuple[str, ...], core: int) -> Iterator[tuple[int, str]]:
    """The command with flags on one core: its port, and a token that it takes."""
    command = ["serve", "--port", "0", "--log", "quiet", *flags]
    pin = ["taskset", "-c", str(core)] if shutil.which("taskset") else []
    process = subprocess.Popen(
        [*pin, sys.executable, "-m", "stub_server", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        port, own = 0, ""
        for line in process.stdout:
            if line.startswith("  address"):
                port = int(line.rsplit(":", 1)[1])
            if line.startswith("curl "):
                own = line.split("Bearer ")[1].split("'")[0]
                break
        yield port, own
    finally:
        process.terminate()
        process.communicate()


def _shots() -> tuple[Shot, Shot]:
    """A customer and a new order, as the servers of the other figures are asked for."""
    get, _, _, post = shots(create_app().sandboxes.default)
    return get, post


def _starts(folder: Path) -> list[float]:
    """Seconds from the command to its first answer, over a directory of so many steps."""
    app = create_app(Settings(store=folder))
    inside = Inside(app)
    (_, post), own = _shots(), token(app)

    async def begin() -> None:
        app.sandboxes.persistence.start()

    inside.run(begin())
    while app.sandboxes.default.log.number < STEPS:
        answer = inside.ask(post.method, post.path, post.body, own)
        assert answer.status == 201, orjson.loads(answer.body)
    inside.run(app.sandboxes.persistence.stop())
    inside.close()
    found = []
    command = Path(sys.executable).with_name("stub-server")
    for _ in range(3):
        begun = time.perf_counter()
        with started(command, "--store", str(folder)):
            found.append(time.perf_counter() - begun)
    return found
