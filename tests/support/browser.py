"""A real browser without a window: Chromium, driven over its debugging protocol."""

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.sync.client import ClientConnection, connect

from .live import NO_TLS
from .make import object_of

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


class Left(AssertionError):
    """The page was left for another one while it was asked."""


class Page:
    """One tab: `look` asks it in JavaScript, `until` asks until the answer is true."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.heard: list[dict[str, Any]] = []
        """What the browser has told of by itself, once `listen` was called."""
        self.tell("Page.enable")
        # a tab without a window never has the focus
        self.tell("Emulation.setFocusEmulationEnabled", enabled=True)

    def tell(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events in between are passed over."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=_PATIENCE))
            if "method" in message:
                self.heard.append(message)
            if message.get("id") == number:
                if "navigated" in message.get("error", {}).get("message", ""):
                    raise Left(message)
                assert "error" not in message, message
                return object_of(message, "result")

    def go(self, url: str) -> None:
        """Open an address and wait until its documents and scripts are there."""
        self.tell("Page.navigate", url=url)
        self.until(f"document.readyState === 'complete' && location.href === {json.dumps(url)}")

    def listen(self) -> None:
        """Hear of requests, errors and messages of the console."""
        for domain in ("Network", "Log", "Runtime"):
            self.tell(f"{domain}.enable")
        self.heard.clear()

    def complaints(self) -> list[str]:
        """What went wrong on pages since `listen`: errors of scripts, policies, and requests that
        were not answered.
        """
        entries = [
            each["params"]["entry"] for each in self.heard if each["method"] == "Log.entryAdded"
        ]
        thrown = [
            each["params"] for each in self.heard if each["method"] == "Runtime.exceptionThrown"
        ]
        return [
            f"{each['text']} {each.get('url')}" for each in entries if each["level"] == "error"
        ] + list(map(str, thrown))

    def requested(self) -> list[str]:
        """The addresses that were asked for since `listen`."""
        sent = [
            each["params"] for each in self.heard if each["method"] == "Network.requestWillBeSent"
        ]
        return [each["request"]["url"] for each in sent]

    def seen(self, width: int = 1280, *, dark: bool = False) -> None:
        """Be so wide, and light or dark.

        Nothing moves: colours that change slowly would be judged half way.
        """
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = "dark" if dark else "light"
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        self.tell(
            "Emulation.setEmulatedMedia",
            features=[{"name": name, "value": told} for name, told in features.items()],
        )

    def scripts(self, *, run: bool) -> None:
        """Run the scripts of pages, or none."""
        self.tell("Emulation.setScriptExecutionDisabled", value=not run)

    def picture(self) -> bytes:
        """The whole page as a PNG."""
        size = self.tell("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": size["width"],
            "height": min(size["height"], 6000),
            "scale": 1,
        }
        shot = self.tell(
            "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
        )
        return base64.b64decode(shot["data"])

    def barriers(self, *rules: str) -> list[str]:
        """What axe-core finds on the page, of all rules or of some: each that is
        broken, and where.
        """
        if self.look("typeof axe === 'undefined'"):
            self.look(f"{_axe()}; undefined")
        only = f", runOnly: {json.dumps(rules)}" if rules else ""
        found = self.look(
            "axe.run(document, {resultTypes: ['violations']"
            + only
            + "}).then(result => result.violations.map(each => each.id + ' ' + each.nodes.map(node"
            " => node.target.join(' ')).slice(0, 5).join(', ')))"
        )
        return list(found)

    def look(self, expression: str) -> Any:
        """The value of an expression, as if the user had caused it; a promise is awaited."""
        answer = self.tell(
            "Runtime.evaluate",
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true, on this page or on one that follows it."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            with suppress(Left):
                if self.look(expression):
                    return
            assert time.monotonic() < deadline, f"never true: {expression}"
            time.sleep(0.02)


@cache
def _axe() -> str:
    """The source of axe-core, which a package ships."""
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


@contextmanager
def browsing() -> Iterator[Page]:
    """A tab of a browser that knows nothing; skips where there is no Chromium."""
    binary = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if binary is None:
        pytest.skip("no Chromium is on this machine: no page was opened in a browser")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [binary, *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
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
