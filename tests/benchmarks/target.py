"""A server that is measured, in a process and on a core of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .world import Shot


@dataclass(frozen=True, slots=True)
class Target:
    """A server that is running."""

    name: str
    process: subprocess.Popen[str]
    port: int
    token: str
    shots: tuple[Shot, ...]

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def cpu(self) -> float | None:
        """Seconds of CPU that the server has used so far, where the system tells."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        if not stat.exists():
            return None
        fields = stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def started(name: str, core: int) -> Iterator[Target]:
    """A server in a process of its own, until the block ends."""
    command = [sys.executable, "-m", "tests.benchmarks.servers", name, str(core)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield Target(
            name,
            process,
            told["port"],
            told["token"],
            tuple(Shot(**shot) for shot in told["shots"]),
        )
    finally:
        process.terminate()
        process.wait()
