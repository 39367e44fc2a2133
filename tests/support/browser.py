"""A real browser without a window: Chromium, driven over its debugging protocol."""

import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.sync.client import ClientConnection, connect

from .live import NO_TLS

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
_PATIENCE = 60.0


class Page:
    """One tab: `look` asks it in JavaScript, `until` asks until the answer is true."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.tell("Page.enable")
        self.tell("Emulation.setFocusEmulationEnabled", enabled=True)  # a tab without a window never has the focus

    def tell(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events in between are passed over."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=_PATIENCE))
            if message.get("id") == number:
                assert "error" not in message, message
                answer: dict[str, Any] = message["result"]
                return answer

    def go(self, url: str) -> None:
        """Open an address and wait until its documents and scripts are there."""
        self.tell("Page.navigate", url=url)
        self.until(f"document.readyState === 'complete' && location.href === {json.dumps(url)}")

    def look(self, expression: str) -> Any:
        """The value of an expression, as if the user had caused it; a promise is awaited."""
        answer = self.tell(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + _PATIENCE
        while not self.look(expression):
            assert time.monotonic() < deadline, f"never true: {expression}"
            time.sleep(0.02)


@contextmanager
def browsing() -> Iterator[Page]:
    """A tab of a browser that knows nothing; skips where there is no Chromium."""
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if binary is None:
        pytest.skip("no Chromium is on this machine: no page was opened in a browser")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [binary, *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                with connect(_socket_of(Path(folder), process), max_size=None) as socket:
                    yield Page(socket)
            finally:
                process.terminate()


def _socket_of(folder: Path, process: subprocess.Popen[bytes]) -> str:
    """The debugging address of the browser's first tab."""
    file = folder / "DevToolsActivePort"
    deadline = time.monotonic() + _PATIENCE
    while not (file.is_file() and file.read_text(encoding="utf-8").count("\n")):
        assert process.poll() is None, "the browser ended"
        assert time.monotonic() < deadline, "the browser did not start"
        time.sleep(0.05)
    port = file.read_text(encoding="utf-8").splitlines()[0]
    tabs = httpx2.get(f"http://127.0.0.1:{port}/json/list", timeout=30, verify=NO_TLS).json()
    return str(next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"))
