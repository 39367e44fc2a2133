"""A receiver in a process of its own that fails at random, and can be killed and started again at
the same address.

`python -m tests.support.fickle PORT FILE SEED SHARE` answers webhooks on a port and writes down
every request with the status that it is about to answer; 0 stands for a connection that is closed
instead. SHARE of the requests fail.
"""

import asyncio
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import orjson

from .forked import Popen

ROOT = Path(__file__).parents[2]
FAILURES = (500, 502, 503, 429, 404, 0)


class _Connection(asyncio.Protocol):
    """One kept-alive connection."""

    def __init__(self, random: Random, share: float, file: Any) -> None:
        self._random, self._share, self._file, self._data = random, share, file, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            lines = self._data[:end].decode("latin-1").split("\r\n")[1:]
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines)
            }
            length = end + 4 + int(headers["content-length"])
            if len(self._data) < length:
                return
            body = self._data[end + 4 : length]
            self._data = self._data[length:]
            status = self._random.choice(FAILURES) if self._random.random() < self._share else 200
            self._file.write(
                orjson.dumps({"status": status, "headers": headers, "body": body.decode()}) + b"\n"
            )
            self._file.flush()
            if status == 0:
                self._transport.close()
                return
            self._transport.write(b"HTTP/1.1 %d X\r\ncontent-length: 2\r\n\r\nok" % status)  # type: ignore[attr-defined]


async def _serve(port: int, path: str, seed: int, share: float) -> None:
    random = Random(seed)
    with open(path, "ab") as file:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: _Connection(random, share, file), "127.0.0.1", port
        )
        print("ready", flush=True)
        await server.serve_forever()


@dataclass(slots=True)
class Fickle:
    """The receiver as a test sees it: `file` is what it has written down."""

    file: Path
    share: float
    port: int
    starts: int = 0
    process: "subprocess.Popen[str] | None" = field(default=None)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/hook"

    def start(self) -> None:
        """Begin to answer, or begin again."""
        self.starts += 1
        command = [sys.executable, "-m", "tests.support.fickle", str(self.port), str(self.file)]
        command += [str(self.starts), str(self.share)]
        self.process = Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert "ready\n" == self.process.stdout.readline()

    def kill(self) -> None:
        """Die, whatever it is doing."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def received(self) -> dict[str, list[dict[str, Any]]]:
        """What has come, by event id."""
        found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in self.file.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):  # a line that it died over was not answered
                request = orjson.loads(line)
                found[request["headers"]["webhook-id"]].append(request)
        return found


@contextmanager
def fickle(folder: Path, share: float) -> Iterator[Fickle]:
    """A receiver that answers, until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    receiver = Fickle(folder / "received", share, port)
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.kill()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
