"""The server as a process of its own, which can be killed: `with Process(…) as server`."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2

from .forked import Popen, run
from .live import NO_TLS
from .make import Json, typed

ROOT = Path(__file__).parents[2]
PATIENCE = 60


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return typed(int, taken.getsockname()[1])


class Process:
    """A server with whatever flags.

    `module` is run in place of the command, and `root` has the package.
    """

    def __init__(
        self,
        *flags: str,
        module: str = "stub_server",
        env: Mapping[str, str] | None = None,
        root: Path = ROOT,
    ) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [
            sys.executable,
            "-m",
            module,
            "serve",
            "--port",
            str(self.port),
            "--log",
            "quiet",
            *flags,
        ]
        self._env = {**os.environ, **(env or {})}
        self._root = root
        self._process: subprocess.Popen[str] | None = None
        self.banner = ""

    @property
    def pid(self) -> int:
        """The number of the process."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Serve, until the first request was answered."""
        self._process = Popen(
            self._command,
            cwd=self._root,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.banner = ""
        for line in self._process.stdout:
            self.banner += line
            if re.match(r"curl ", line):
                httpx2.get(
                    f"{self.url}/_sandbox/health", timeout=PATIENCE, verify=NO_TLS
                ).raise_for_status()
                return
        raise AssertionError(self.said())

    def refused(self) -> str:
        """What it says when it does not start."""
        done = run(self._command, cwd=self._root, env=self._env, timeout=PATIENCE)
        assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
        return done.stderr

    def said(self) -> str:
        """What it has written to its standard error, once it has ended."""
        assert self._process is not None
        return self._process.communicate(timeout=PATIENCE)[1]

    def kill(self) -> None:
        """End it at once, whatever it does."""
        assert self._process is not None
        self._process.kill()
        self._process.communicate(timeout=PATIENCE)

    def end(self) -> None:
        """Kill it, if it runs."""
        if self._process is not None and not self.has_ended:
            self.kill()

    def fact(self, name: str) -> str:
        """What the banner says beside a name."""
        found = re.search(rf"^  {name} +(.*)$", self.banner, re.M)
        assert found, (name, self.banner)
        return found[1]

    def signal(self, number: int) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self, within: float = PATIENCE) -> str:
        """Have it end in order in so many seconds; answers what it has written to its
        standard error.
        """
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        _, said = self._process.communicate(timeout=within)
        assert self._process.returncode == 0, said
        return said

    @property
    def has_ended(self) -> bool:
        """Whether it does not run any more."""
        return self._process is not None and self._process.poll() is not None

    def __enter__(self) -> "Process":
        if self._process is None or self.has_ended:
            self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def control(self, sandbox: str = "default") -> httpx2.Client:
        """The control surface of a sandbox."""
        return httpx2.Client(
            base_url=f"{self.url}/s/{sandbox}/_sandbox", timeout=PATIENCE, verify=NO_TLS
        )

    def api(self, sandbox: str = "default") -> httpx2.Client:
        """The API of a sandbox with a token of today."""
        with self.control(sandbox) as control:
            credentials: Json = control.get("/credentials").json()
        headers = {"Authorization": f"Bearer {credentials['jwt']}"}
        return httpx2.Client(
            base_url=f"{self.url}/s/{sandbox}", headers=headers, timeout=PATIENCE, verify=NO_TLS
        )


@contextmanager
def ready(
    file: Path, *command: str, **options: Any
) -> Iterator[tuple["subprocess.Popen[str]", Json]]:
    """A server that a command starts, and what its ready file says, once it has written one."""
    before = file.read_bytes() if file.exists() else b""
    process = Popen(
        [*command, "--ready-file", str(file)], stderr=subprocess.PIPE, text=True, **options
    )
    try:
        until = time.monotonic() + PATIENCE
        written = before
        while written == before:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.01)
            with suppress(FileNotFoundError):
                written = file.read_bytes()
        yield process, json.loads(written)
    finally:
        process.kill()
        process.communicate()
