"""`make bench ARGS=--controls`: what POST costs with --store, and how long a start from 100,000 steps takes."""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table

from stub_server.app import create_app
from stub_server.settings import Settings

from ..engine.inside import Inside
from .load import fire
from .start import started
from .world import Shot, shots, token

ROUNDS, SECONDS = 7, 2.0
STEPS = 100_000
# What the sandbox holds itself to.
SHARE, START = 0.7, 3.0  # of POST in memory; seconds


def measure(console: Console, cores: tuple[int, int]) -> list[str]:
    """Measure and show; answers the promises that are not kept."""
    with tempfile.TemporaryDirectory() as folder:
        rates = _rates(Path(folder) / "posts", cores)
        starts = _starts(Path(folder) / "steps")
    share = statistics.median(kept / plain for plain, kept, _ in rates)
    synced = statistics.median(kept / plain for plain, _, kept in rates)
    took = statistics.median(starts)
    table = Table(title="A store")
    for column in ("what", "measured", "promised"):
        table.add_column(column)
    table.add_row("POST in memory", f"{statistics.median(plain for plain, _, _ in rates):,.0f} a second", "")
    table.add_row("POST with --store, of that", f"{share:.2f}", f"at least {SHARE}")
    table.add_row("POST with --sync always, of that", f"{synced:.2f}", "")
    table.add_row(f"start from {STEPS:,} steps", f"{took:.2f} s", f"less than {START:g} s")
    console.print(table)
    missed = [] if share >= SHARE else [f"POST with --store is {share:.2f} of POST in memory, and not {SHARE}."]
    return missed if took < START else [*missed, f"A start from {STEPS:,} steps takes {took:.2f} s."]


def _rates(folder: Path, cores: tuple[int, int]) -> list[tuple[float, float, float]]:
    """POSTs a second in memory, with a store, and with one that waits for the disk; rounds are interleaved."""
    served, loading = cores
    kinds: tuple[tuple[str, ...], ...] = (
        (),
        ("--store", str(folder / "interval")),
        ("--store", str(folder / "always"), "--sync", "always"),
    )
    with ExitStack() as stack:
        targets = [stack.enter_context(_serving(flags, served)) for flags in kinds]
        post = _post()
        for port, own in targets:
            fire(post, port, own, 0.5, loading)
        rounds = []
        for _ in range(ROUNDS):
            first, second, third = (fire(post, port, own, SECONDS, loading).per_second for port, own in targets)
            rounds.append((first, second, third))
        return rounds


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


def _post() -> Shot:
    """An order, as the servers of the other figures are asked for."""
    return next(shot for shot in shots(create_app().sandboxes.default) if shot.method == "POST")


def _starts(folder: Path) -> list[float]:
    """Seconds from the command to its first answer, over a directory of so many steps."""
    app = create_app(Settings(store=folder))
    inside = Inside(app)
    post, own = _post(), token(app)

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
