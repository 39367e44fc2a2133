"""How long a start takes: `python -m tests.benchmarks.start`, from the command to the first 200."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

import click

PATHS = ("/_sandbox/health", "/v2/customers?limit=2")
LONGEST = 60  # seconds until a start counts as failed


@dataclass(frozen=True, slots=True)
class Start:
    """One start, in seconds: until the command told its address, and until its first answers were
    there.

    `cpu` is the server's own, until the last of the answers.
    """

    ready: float
    answered: float
    cpu: float


def plain() -> dict[str, str]:
    """The environment of a server that keeps its byte code, as it does for a user."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def started(command: Path, *flags: str) -> Iterator[tuple[int, int, str]]:
    """A server on a free port: its process, its port, and a token that it takes."""
    process = subprocess.Popen(
        [command, "serve", "--port", "0", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=plain(),
    )
    try:
        assert process.stdout is not None
        port, token = 0, None
        for line in process.stdout:
            if found := re.search(r"^  address +http://127\.0\.0\.1:(\d+)$", line):
                port = int(found[1])
            if found := re.search(r"Authorization: Bearer ([^']+)'", line):
                token = found[1]
                break
        if token is None:
            raise click.ClickException(f"{command} did not start.")
        yield process.pid, port, token
    finally:
        process.terminate()
        process.communicate()


def measure(command: Path) -> Start:
    """Start a server once and ask it for every one of PATHS."""
    begun = time.perf_counter()
    with started(command) as (pid, port, token):
        ready = time.perf_counter() - begun
        connection = HTTPConnection("127.0.0.1", port, timeout=LONGEST)
        for path in PATHS:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                raise click.ClickException(f"GET {path} answered {response.status}.")
        answered = time.perf_counter() - begun
        cpu = cpu_seconds(pid)
        connection.close()
    return Start(ready, answered, cpu)


def cpu_seconds(pid: int) -> float:
    """Seconds of CPU that a process has used so far: to the nanosecond where the system
    tells, else none.
    """
    tasks = Path(f"/proc/{pid}/task")
    if not tasks.exists():
        return 0.0
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


@click.command()
@click.option("--rounds", default=15, show_default=True, help="Starts of each server, interleaved.")
@click.option(
    "--against",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The stub-server of another checkout, started in turn with this one.",
)
def main(rounds: int, against: Path | None) -> None:
    """Start the server again and again, and print how long its first 200 takes."""
    commands = {"this": Path(sys.executable).with_name("stub-server")} | (
        {"other": against} if against else {}
    )
    for command in commands.values():  # the first start writes byte code and fills the file cache
        measure(command)
    starts: dict[str, list[Start]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            starts[name].append(measure(command))
    click.echo("server   ready min/median   first 200 min/median   CPU min/median   (ms)")
    for name, own in starts.items():
        columns = ([s.ready for s in own], [s.answered for s in own], [s.cpu for s in own])
        figures = [f"{min(c) * 1000:.0f} / {median(c) * 1000:.0f}" for c in columns]
        click.echo(f"{name:<8} {figures[0]:>16}   {figures[1]:>20}   {figures[2]:>14}")


if __name__ == "__main__":
    main(prog_name="python -m tests.benchmarks.start")
