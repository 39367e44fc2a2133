"""The server under load, in a process of its own, and how much memory it holds."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

COMMAND = (sys.executable, "-m", "stub_server")
_ADDRESS = re.compile(r"http://[^\s/]+:(\d+)").search


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is running."""

    process: subprocess.Popen[str]
    port: int

    def memory(self) -> int:
        """Bytes of memory that it holds now."""
        statm = Path(f"/proc/{self.process.pid}/statm")
        if statm.exists():
            return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        told = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(self.process.pid)], capture_output=True, text=True
        )
        return int(told.stdout) * 1024


@contextmanager
def started() -> Iterator[Server]:
    """`stub-server serve` as a user starts it, until the block ends."""
    command = [*COMMAND, "serve", "--port", "0", "--log", "quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = next(
                (int(found[1]) for line in process.stdout if (found := _ADDRESS(line))), None
            )
            assert port is not None, "the server did not start"
            # what it prints later is for nobody
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield Server(process, port)
        finally:
            process.terminate()
            process.wait(30)
