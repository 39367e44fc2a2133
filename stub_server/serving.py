"""Serving an application: the socket, the garbage collector, the banner, uvicorn, and restarts on change."""

import asyncio
import gc
import os
import signal
import socket
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

import orjson
import uvicorn

from . import banner
from .app import PACKAGE, create_app, data_dir
from .calls.server import Server
from .delivery.courier import GRACE
from .engine.journal import Trace
from .files.admitting import DROPPING
from .files.package import BadFile
from .http.monitor import IDLE, Limits
from .http.protocol import HttpProtocol, protocol
from .http.routing import Application
from .http.selection import ABOUT_THE_SERVER
from .kernel.problem import UnusableInput
from .request_log import RequestLog
from .settings import Settings

BACKLOG = 2048
OWN_FILES = 256  # beside connections: deliveries, the contract's files, connections that are about to be refused
FAREWELL = 0.3  # seconds in which other servers of the store notice that this one stops, before it closes connections
HANDOVER = 0.001  # seconds after which the thread for long work gives way to the event loop


def serve(settings: Settings, *, reloads: bool = False) -> None:
    """Serve until interrupted. Raises UnusableInput.

    With `reloads` it serves in a process of its own, and in a new one whenever contract, fixtures, overlays or code
    change. The socket stays open: a request during a restart waits instead of failing.
    """
    allow_files(settings.max_connections, forwards=isinstance(settings.store, str))
    with listen(settings) as listener:
        settings = with_port(settings, listener)
        if not reloads:
            _start(settings, listener)
            return
        from watchfiles import PythonFilter, run_process

        watched = {PACKAGE, data_dir("openapi"), data_dir("fixtures"), *settings.overlays}
        suffixes = (".yaml", ".yml", ".json", ".html", ".css", ".js")
        run_process(
            *watched,
            target=_serve_here,
            args=(settings, listener),
            watch_filter=PythonFilter(extra_extensions=suffixes),
        )


def _serve_here(settings: Settings, listener: socket.socket) -> None:
    # Ctrl-C signals the whole group, and the parent forwards it: a second signal would interrupt requests.
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    try:
        _start(settings, listener)
    except UnusableInput as error:
        print(f"Error: {error}\nWaiting for a change …", file=sys.stderr)
        sys.exit(2)


class ReadyFile:
    """A JSON file with what a test needs first: `url`, `token`, `sample`, and the `pid` to stop the server by.

    It appears at once and whole: it is written beside its place, and moved there.
    """

    def __init__(self, path: Path, server: Server) -> None:
        """Write the draft, for its owner alone, since a token opens the sandbox. Raises OSError."""
        sandbox = server.sandboxes.default
        found = {
            "url": server.settings.url,
            "token": server.ready_token(sandbox),
            "sample": sandbox.sample,
            "pid": os.getpid(),
        }
        self._path, self._text = path.absolute(), orjson.dumps(found) + b"\n"
        with tempfile.NamedTemporaryFile(dir=self._path.parent, prefix=path.name, delete=False) as draft:
            draft.write(self._text)
        self._draft = Path(draft.name)

    def show(self) -> None:
        self._draft.replace(self._path)

    def remove(self) -> None:
        """Remove the file, unless another server has replaced it."""
        with suppress(OSError):
            if self._path.read_bytes() == self._text:
                self._path.unlink()


def _start(settings: Settings, listener: socket.socket) -> None:
    path = settings.ready_file
    with _writing(path):
        if path is not None:
            path.unlink(missing_ok=True)  # of a server that was killed
    app = build(settings)
    with _writing(path):
        ready_file = None if path is None else ReadyFile(path, app.server)
    run(app, settings, listener, ready_file)


@contextmanager
def _writing(ready_file: Path | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = f"--ready-file {ready_file}: {error.strerror or error}."
        raise UnusableInput(f"{where} Name a file in a directory that you may write to.") from None


def allow_files(connections: int, *, forwards: bool = False) -> None:
    """Raise the limit of open files to what connections need. Raises UnusableInput if that is not allowed.

    A forwarded request needs a second connection, to another server.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    needed = connections * (1 + forwards) + OWN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (OSError, ValueError):  # beyond the hard limit, or one of the kernel's own
        most = "fewer" if hard == resource.RLIM_INFINITY else hard
        message = f"--max-connections {connections} needs {needed} open files, and {most} are allowed (ulimit -n)."
        raise UnusableInput(message) from None


def listen(settings: Settings) -> socket.socket:
    """A listening socket; with port 0 on a free port. Raises UnusableInput."""
    try:
        family, *_, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        hint = " --port 0 picks a free one." if settings.port else ""
        raise UnusableInput(f"cannot listen on {where}: {error.strerror or error}.{hint}") from None


def with_port(settings: Settings, listener: socket.socket) -> Settings:
    return replace(settings, port=listener.getsockname()[1])


def build(settings: Settings) -> Application:
    """The application. Raises UnusableInput for a contract, overlay, scenario, store or file that cannot be used."""
    try:
        return create_app(settings)
    except BadFile as error:
        advice = (DROPPING,) if error.kind == "unfit" and not settings.drop_unfit else ()
        lines = (f"--restore {settings.restore}: it cannot be used.", *error.reasons, *advice)
        raise UnusableInput("\n  ".join(lines)) from None


def run(app: Application, settings: Settings, listener: socket.socket, ready_file: ReadyFile | None = None) -> None:
    """Print the banner and serve until a signal comes, or nobody uses the server."""
    server = _Server(app, settings, ready_file)
    url = "" if settings.is_public else settings.url
    log = None if settings.log == "quiet" else RequestLog(settings.log, url=url).start()
    if log is not None:
        app.server.listeners.append(log)
    # uvicorn shuts down in order and then raises the signal again: a stop on request is not a failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # A signal before uvicorn runs what it is given leaves a coroutine that nobody waits for.
    warnings.filterwarnings("ignore", r"coroutine '\w+\.serve' was never awaited", RuntimeWarning)
    try:
        banner.show(app, settings)
        calm_collector()
        sys.setswitchinterval(HANDOVER)
        server.run([listener])
    except KeyboardInterrupt:  # before uvicorn serves; or it has shut down in order, and raises the signal again
        server.stopped_by = server.stopped_by or signal.Signals.SIGINT.name
    finally:
        if ready_file is not None:
            ready_file.remove()
        if log is not None:
            log.close(server.stopped_by)
        gc.freeze()  # the interpreter would else walk all sandboxes at its end: up to a second


class _Server(uvicorn.Server):
    """uvicorn, which informs the application at once of a signal to stop, and others once it answers.

    `stopped_by` is the name of a signal, or `idle`.
    """

    def __init__(self, app: Application, settings: Settings, ready_file: ReadyFile | None) -> None:
        super().__init__(uvicorn_config(app, Limits(connections=settings.max_connections)))
        self._app, self._settings, self._ready_file, self.stopped_by = app, settings, ready_file, ""
        self._used = monotonic()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._ready_file is not None:
            self._ready_file.show()
        if self._settings.stop_after_idle is not None:
            self._used = monotonic()
            self._app.server.listeners.append(self._note_use)

    def _note_use(self, trace: Trace, warnings: Sequence[str]) -> None:
        if trace.path not in ABOUT_THE_SERVER:  # health checks and the like are no use
            self._used = monotonic()

    async def on_tick(self, counter: int) -> bool:
        """Stop a server that nobody uses, as SIGTERM does. A request or stream that goes on is use."""
        limit = self._settings.stop_after_idle
        if limit is not None and monotonic() - self._used >= limit and not self.stopped_by:
            connections: Iterable[HttpProtocol] = self.server_state.connections  # type: ignore[assignment]
            if any(connection.waits_for()[0] not in IDLE for connection in connections):
                self._used = monotonic()
            else:
                self.stopped_by = "idle"
                self.handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop. After the first SIGTERM a proxy has time to notice; a second one stops at once."""
        server = self._app.server
        self.stopped_by = self.stopped_by or signal.Signals(sig).name
        if sig == signal.SIGTERM and server.drain and not server.closing.is_announced:
            server.closing.is_announced = True
            loop = asyncio.get_running_loop()
            loop.call_soon_threadsafe(loop.call_later, server.drain, server.closing.set)
            loop.call_soon_threadsafe(loop.call_later, server.drain + FAREWELL, self.handle_exit, sig, None)
            return
        server.closing.set()
        super().handle_exit(sig, frame)


def calm_collector() -> None:
    """Exclude the seeded data from garbage collection, and collect less often.

    A full collection would walk every record during a request. None runs here either: it would take a tenth of the
    start to free half a megabyte. The youngest generation is small: with 50,000 objects, each collection delayed every
    client by 150 ms while a sandbox grew.
    """
    gc.freeze()
    gc.set_threshold(5_000, 500, 100)
    gc.enable()


def uvicorn_config(app: Callable[..., Any], limits: Limits) -> uvicorn.Config:
    """uvicorn with what the sandbox needs and nothing else. RequestLog writes the access log."""
    return uvicorn.Config(
        app,
        access_log=False,
        backlog=BACKLOG,
        http=protocol(limits),
        lifespan="on",
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        ws="none",
    )
