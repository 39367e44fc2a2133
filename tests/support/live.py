"""A real server for tests: uvicorn on a free loopback port, in a thread of its own."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import uvicorn

from stub_server.app import create_app, data_dir
from stub_server.cli.listening import with_port
from stub_server.cli.serving import uvicorn_config
from stub_server.core.clock import parse_iso
from stub_server.engine.sandbox import DEFAULT
from stub_server.server.layers.routing import Application
from stub_server.server.protocol import ConnectionMonitor, Limits
from stub_server.settings import Settings

from .remembered import remembering
from .stores import stored

NOW = "2026-11-20T14:32:05.123Z"
FROZEN = Settings(now=parse_iso(NOW))
_PATIENCE = 60.0
_free: list[int] = []
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For `verify` of clients: these servers speak plain HTTP, and a trust store per client costs a
tenth of a second.
"""


@dataclass(frozen=True, slots=True)
class Live:
    """A server that answers. `app` is for looking inside; requests go to `url`."""

    app: Application
    settings: Settings
    port: int

    @property
    def url(self) -> str:
        """The base address, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def forget(self, name: str) -> None:
        """Delete a sandbox, if it is there: a server keeps only so many. The default one stays."""
        headers = (
            {}
            if self.settings.admin_key is None
            else {"X-Sandbox-Admin-Key": self.settings.admin_key}
        )
        address = f"{self.url}/_sandbox/sandboxes/{name}"
        deleted = httpx2.delete(address, headers=headers, timeout=_PATIENCE, verify=NO_TLS)
        assert deleted.status_code in (204, 404) or name == DEFAULT, deleted.text


class _Threaded(uvicorn.Server):
    def install_signal_handlers(self) -> None:
        """Signals belong to the test run."""


@contextmanager
def serving(
    app: Callable[..., Any],
    limits: Limits,
    listener: socket.socket | None = None,
    proxies: str | None = None,
) -> Iterator[int]:
    """Serve any application as the product is served, until the block ends; answers the port."""
    with listener or socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        server = _Threaded(uvicorn_config(app, ConnectionMonitor(limits), proxies))
        thread = threading.Thread(
            target=server.run, args=([listening],), name=f"server-{port}", daemon=True
        )
        thread.start()
        deadline = time.monotonic() + _PATIENCE
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError("The server did not start.")
            time.sleep(0.005)
        try:
            yield port
        finally:
            server.should_exit = True
            thread.join(_PATIENCE)


@contextmanager
def running(settings: Settings, limits: Limits | None = None) -> Iterator[Live]:
    """Serve `settings` on a free port until the block ends; `limits` on connections are those of
    the product.
    """
    with stored(settings) as settings, _listener(settings) as listener:
        settings = with_port(settings, listener)
        with remembering():
            app = create_app(settings)
        limits = limits or Limits(connections=settings.max_connections)
        with serving(app, limits, listener, settings.forwarded_allow_ips) as port:
            yield Live(app, settings, port)
    if not settings.overlays:
        _free.append(port)


def small_scenario(folder: Path) -> str:
    """The default world at a sixth of its size, as a file in a folder."""
    text = (data_dir("fixtures") / "scenarios" / "default.yaml").read_text(encoding="utf-8")
    (folder / "small.yaml").write_text(f"scale: 0.15\n{text}", encoding="utf-8")
    return str(folder / "small.yaml")


@contextmanager
def running_small() -> Iterator[Live]:
    """Serve small worlds."""
    with (
        TemporaryDirectory() as folder,
        running(replace(FROZEN, scenario=small_scenario(Path(folder)))) as live,
    ):
        yield live


def _listener(settings: Settings) -> socket.socket:
    """A socket that listens where a server did that has ended, or else on a free port: addresses
    stand in worlds.

    No address serves first one contract and then another: the ledger asks for it once.
    """
    while _free and not settings.overlays:
        with suppress(OSError):
            return socket.create_server(("127.0.0.1", _free.pop()))
    return socket.create_server(("127.0.0.1", 0))
