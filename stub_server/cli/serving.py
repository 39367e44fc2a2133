"""Serving an application: the socket, the garbage collector, the banner, uvicorn, and
restarts on change.
"""

import asyncio
import gc
import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from time import monotonic, sleep
from types import FrameType
from typing import Any, NoReturn

import orjson
import uvicorn
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import Receive, Scope, Send

from ..app import PACKAGE, create_app, data_dir
from ..core.problem import UnusableInput
from ..core.shipped import FIXTURES
from ..core.text import host_name, is_local, printable_lines
from ..data.scenario import is_file
from ..engine.kept import Trace
from ..server.layers.routing import Application
from ..server.layers.selection import ABOUT_THE_SERVER
from ..server.protocol import ConnectionMonitor, Limits, bounded, protocol
from ..server.server import Server
from ..settings import Settings
from ..storage.package import BadFile
from ..webhooks.courier import GRACE
from . import banner, process
from .listening import BACKLOG, listen, with_port
from .request_log import RequestLog

# seconds in which other servers of the store notice that this one stops, before it closes
# connections
FAREWELL = 0.3
STOPPING = [signal.SIGINT, signal.SIGTERM]
if hasattr(signal, "SIGHUP"):
    STOPPING.append(signal.SIGHUP)
LONGER_THAN_KEPT = 3_600  # seconds: the monitor closes idle connections, with every other deadline
LAST_WORDS = 1.0  # seconds that a server has to stop once the program that started it is gone
ACCEPTED = 32  # connections that are accepted in a turn of the event loop
NEWEST, YOUNG, ALL = range(3)  # generations of objects
OLD = 5  # ticks after which the young are collected though requests go on
SELDOM = 6_000  # ticks, ten minutes, between two moments in which all may be collected
QUIET = 20  # ticks in a row in which no request was under way, before all is collected
HANDOVER = 0.0002  # seconds after which the thread for long work gives way to the event loop


def serve(settings: Settings, *, reloads: bool = False) -> None:
    """Serve until interrupted. Raises UnusableInput.

    With `reloads` it serves in a process of its own, and in a new one whenever contract, fixtures,
    overlays, scenario or code change. The socket stays open: a request waits during a restart, and
    is answered with 503 and the reason while what changed cannot be served.
    """
    _on_signals(_stop_early, *STOPPING[1:])  # SIGINT is an exception already
    allow_files()
    with listen(settings) as listeners:
        settings = with_port(settings, listeners[0])
        if not reloads:
            _start(settings, listeners)
            return
        own = [*settings.overlays]
        if is_file(settings.scenario):
            own.append(Path(settings.scenario))
        _reload(settings, listeners, own)


def _reload(settings: Settings, listeners: Sequence[socket.socket], own: Sequence[Path]) -> None:
    """Serve in one process after the other, until interrupted; `own` are files of the user.

    Their folders are watched, since editors put new files in the places of old ones.
    """
    import watchfiles

    code = watchfiles.PythonFilter(
        extra_extensions=(".yaml", ".yml", ".json", ".html", ".css", ".js")
    )
    files, shipped = {file.resolve() for file in own}, set[Path]()
    for root in (PACKAGE, data_dir("openapi"), FIXTURES):
        shipped.update(root.glob("**/"))

    def concerns(change: watchfiles.Change, path: str) -> bool:
        file = Path(path)
        return file in files or (file.parent in shipped and code(change, path))

    logging.getLogger("watchfiles").setLevel(logging.ERROR)  # it warns of each interrupt
    _on_signals(signal.default_int_handler, *STOPPING)
    watchfiles.run_process(
        *shipped,
        *{file.parent for file in files if file.parent.is_dir()},
        target=_serve_here,
        args=(settings, listeners),
        watch_filter=concerns,
        recursive=False,
    )


def _on_signals(handler: Callable[[int, FrameType | None], None], *numbers: int) -> None:
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, handler)


def _stop_early(number: int, frame: FrameType | None) -> NoReturn:
    """A signal while the server is being made: what is open is closed on the way out."""
    sys.exit(128 + number)


def _serve_here(settings: Settings, listeners: Sequence[socket.socket]) -> None:
    process.prepare()
    _on_signals(_stop_early, *STOPPING)
    # Ctrl-C signals the whole group, and the parent forwards it: a second signal would interrupt
    # requests.
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    try:
        _start(settings, listeners)
    except UnusableInput as error:
        print(f"Error: {printable_lines(str(error))}\nWaiting for a change …", file=sys.stderr)
        _refuse(str(error), listeners)


def _refuse(reason: str, listeners: Sequence[socket.socket]) -> None:
    """Answer every request with 503, until a change ends this process. The reason why the server
    cannot start has paths and lines of files: it is for this machine, by a name of its own.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request_id, sent = f"req_{secrets.token_hex(12)}", Headers(scope=scope)
        headers = {"retry-after": "1", "x-request-id": request_id, "connection": "close"}
        is_here = is_local(host_name(sent.get("host", ""))) and is_local(scope["client"][0])
        shown = reason if is_here else "The server cannot start. Its log says why."
        error = {
            "error": True,
            "message": shown,
            "code": "sandbox_unavailable",
            "status": 503,
            "request_id": request_id,
            "details": [],
        }
        response: Response = JSONResponse(error, 503, headers)
        if "text/html" in sent.get("accept", ""):
            response = HTMLResponse(
                f"<meta charset=utf-8><meta http-equiv=refresh content=1><pre>{escape(shown)}",
                503,
                headers,
            )
        await response(scope, receive, send)

    uvicorn.Server(
        uvicorn.Config(
            answer, lifespan="off", access_log=False, log_level="error", timeout_graceful_shutdown=1
        )
    ).run([*listeners])


def stop_on_eof() -> None:
    """Stop when standard input ends, as SIGTERM does, but at the latest after
    LAST_WORDS seconds.
    """

    def wait_for_end() -> None:
        with suppress(OSError):  # without a standard input there is nobody to wait for
            while os.read(0, 4096):
                pass
        signal.raise_signal(signal.SIGTERM)
        sleep(LAST_WORDS)
        os._exit(0)

    threading.Thread(target=wait_for_end, name="end of standard input", daemon=True).start()


def ready_draft(path: Path, server: Server) -> Path:
    """Write a JSON file with what a test needs first: `url`, `token`, `sample`, and the `pid` to
    stop the server by.

    It stands beside its place until the server answers, for its owner alone, since a token opens
    the sandbox. Raises UnusableInput.
    """
    sandbox = server.sandboxes.default
    found = {
        "url": server.settings.url,
        "token": server.ready_token(sandbox),
        "sample": sandbox.origin.sample,
        "pid": os.getpid(),
    }
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as draft:
            draft.write(orjson.dumps(found) + b"\n")
    except OSError as error:
        where = f"--ready-file {path}: {error.strerror or error}."
        raise UnusableInput(f"{where} Name a file in a directory that you may write to.") from None
    return Path(draft.name)


def remove_ready_file(path: Path, draft: Path | None) -> None:
    """Remove the ready file, or its draft, unless another server has replaced it."""
    if draft is not None and draft.exists():
        draft.unlink()
    with suppress(OSError, ValueError):
        if orjson.loads(path.read_bytes())["pid"] == os.getpid():
            path.unlink()


def _start(settings: Settings, listeners: Sequence[socket.socket]) -> None:
    if settings.ready_file is not None:
        with suppress(OSError):
            settings.ready_file.unlink()  # of a server that was killed
    try:
        app = create_app(settings)
    except BadFile as error:
        raise UnusableInput(
            "\n  ".join((f"--restore {settings.restore}: it cannot be used.", *error.reasons))
        ) from None
    run(app, settings, listeners)


def allow_files() -> None:
    """Open as many files as the machine allows: each connection is one, and a forwarded request
    needs another.
    """
    # Windows has no such limit; a kernel may allow fewer than it says
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run(app: Application, settings: Settings, listeners: Sequence[socket.socket]) -> None:
    """Print the banner and serve until a signal comes, or nobody uses the server.

    Raises UnusableInput.
    """
    server = _Server(app, settings)
    log = None
    if settings.log != "quiet":
        log = RequestLog(settings.log, url="" if settings.is_public else settings.url)
        app.server.listeners.append(log.start())
    try:
        _on_signals(server.handle_exit, *STOPPING)
        if settings.ready_file is not None:  # to be refused before anything is printed
            server.draft = ready_draft(settings.ready_file, app.server)
        try:
            banner.show(app, settings)
        except OSError:  # who reads it may close the pipe after the line that he needs
            process.discard_output()
        calm_collector()
        sys.setswitchinterval(HANDOVER)
        server.run([*listeners])
    finally:
        if settings.ready_file is not None:
            remove_ready_file(settings.ready_file, server.draft)
        app.sandboxes.persistence.close()  # of a server that has not come so far as to be stopped
        if log is not None:
            log.close(server.stopped_by)
        gc.freeze()  # the interpreter would else walk all sandboxes at its end: up to a second


class _Server(uvicorn.Server):
    """uvicorn, which informs the application at once of a signal to stop, and others once it
    answers.

    `stopped_by` is the name of a signal, or `idle`; `draft` becomes the ready file.
    """

    def __init__(self, app: Application, settings: Settings) -> None:
        self._connections = ConnectionMonitor(Limits(connections=settings.max_connections))
        super().__init__(uvicorn_config(app, self._connections, settings.forwarded_allow_ips))
        self._app, self._settings, self.stopped_by = app, settings, ""
        self.draft: Path | None = None
        self._used, self._all_is_due, self._quiet_ticks = monotonic(), False, 0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen by several copies of each socket: uvloop accepts one connection of each in a turn,
        and while hundreds are busy a new one would wait for minutes.
        """
        listeners = sockets or []
        await super().startup([each.dup() for each in listeners for _ in range(ACCEPTED)])
        if self.draft is not None and self._settings.ready_file is not None:
            self.draft.replace(self._settings.ready_file)
        if self._settings.stop_after_idle is not None:
            self._app.server.listeners.append(self._note_use)

    def _note_use(self, trace: Trace) -> None:
        if trace.path not in ABOUT_THE_SERVER:  # health checks and the like are no use
            self._used = monotonic()

    async def on_tick(self, counter: int) -> bool:
        """Collect garbage, and stop a server that nobody uses, as SIGTERM does.

        A request or stream that goes on is use.
        """
        self._collect(counter)
        limit = self._settings.stop_after_idle
        if limit is not None and monotonic() - self._used >= limit and not self.stopped_by:
            if self._connections.is_idle:
                self.stopped_by = "idle"
                self.handle_exit(signal.SIGTERM, None)
            else:
                self._used = monotonic()
        return await super().on_tick(counter)

    def _collect(self, counter: int) -> None:
        """Collect what is young, and all once nobody was there for a while: that takes a quarter of
        a second for a million objects.

        The collector by itself counts what is made less what is freed: with a full log it would
        come so seldom that it has a million young objects to look at.
        """
        is_idle = self._connections.is_idle
        self._quiet_ticks = self._quiet_ticks + 1 if is_idle else 0
        self._all_is_due = self._all_is_due or counter % SELDOM == 0
        age = YOUNG
        if self._all_is_due and self._quiet_ticks >= QUIET:
            age, self._all_is_due = ALL, False
        elif not is_idle and counter % OLD:  # what a page is made of is not old yet: it has cycles
            age = NEWEST
        gc.collect(age)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop. After a first signal that is no Ctrl-C a proxy has time to notice; a second one
        stops at once.

        uvicorn would leave the store open at a second Ctrl-C, and raise signals again at its end.
        """
        closing = self._app.server.closing
        self.stopped_by = self.stopped_by or signal.Signals(sig).name
        waits = self.started and sig != signal.SIGINT and closing.drain
        if waits and not closing.is_announced:
            closing.is_announced = True
            loop = asyncio.get_running_loop()
            loop.call_soon_threadsafe(loop.call_later, closing.drain, closing.set)
            loop.call_soon_threadsafe(
                loop.call_later, closing.drain + FAREWELL, self.handle_exit, sig, None
            )
            return
        closing.set()
        self.should_exit = True


def calm_collector() -> None:
    """Exclude the seeded data from garbage collection, and collect less often.

    A full collection would walk every record during a request. None runs here either: it would take
    a tenth of the start to free half a megabyte. The youngest generation is small: with 50,000
    objects, each collection delayed every client by 150 ms while a sandbox grew. The server itself
    collects what outlives the second one.
    """
    gc.freeze()
    gc.set_threshold(5_000, 500, 1_000_000)
    gc.enable()


def uvicorn_config(
    app: Callable[..., Any], connections: ConnectionMonitor, proxies: str | None = None
) -> uvicorn.Config:
    """uvicorn with what the sandbox needs and nothing else. RequestLog writes the access log.

    Only requests of the `proxies` say in X-Forwarded-For who their client is.
    """
    return uvicorn.Config(
        bounded(app),
        access_log=False,
        backlog=BACKLOG,
        http=protocol(connections),
        lifespan="on",
        log_level="error",  # a warning for every client that speaks no HTTP helps nobody
        proxy_headers=proxies is not None,
        forwarded_allow_ips=proxies or "",
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=LONGER_THAN_KEPT,
        ws="none",
    )
