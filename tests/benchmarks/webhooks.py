"""`make bench ARGS=--webhooks`: how fast deliveries leave, what a dead receiver costs the API, and if any is lost."""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import httpx2
import uvicorn
from rich.console import Console
from rich.table import Table

from stub_server.app import create_app
from stub_server.http.watch import Limits
from stub_server.serving import calm_collector, listen, uvicorn_config, with_port
from stub_server.settings import Settings

from ..support.fickle import fickle
from ..support.flood import flood
from ..support.live import FROZEN, NO_TLS, running
from ..support.make import created, customer_body
from .load import Result, fire
from .world import Shot, shots, token

SENT = 5_000
QUEUED = 10_000
EVENTS = 10_000
ROUNDS = 5
CLIENTS = 8
# What the sandbox holds itself to.
PER_SECOND = 1_000
SLOWER = 1.2


@contextmanager
def started(core: int) -> Iterator[tuple[int, str, list[Shot]]]:
    """The server in a process of its own, on a core of its own: its port, a token, and what to ask it for."""
    command = [sys.executable, "-m", "tests.benchmarks.webhooks", str(core)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield told["port"], told["token"], [Shot(**shot) for shot in told["shots"]]
    finally:
        process.terminate()
        process.wait()


def serve(core: int) -> None:
    """Serve on a free port, and tell the parent."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    settings = replace(FROZEN, port=0)
    with listen(settings) as listener:
        settings = with_port(settings, listener)
        app = create_app(settings)
        asked = [asdict(shot) for shot in shots(app.sandboxes.default)]
        print(json.dumps({"port": settings.port, "token": token(app), "shots": asked}), flush=True)
        calm_collector()
        uvicorn.Server(uvicorn_config(app, Limits())).run([listener])


def measure(console: Console, cores: tuple[int, int], seconds: float) -> list[str]:
    """Measure and show; answers the promises that are not kept."""
    served, loading = cores
    missed: list[str] = []
    with started(served) as (port, bearer, asked), tempfile.TemporaryDirectory() as folder:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {loading})
        url = f"http://127.0.0.1:{port}"
        rate = sending_rate(url, Path(folder))
        console.print(f"Deliveries to a fast receiver: {rate:,.0f} a second, {SENT} of them.")
        if rate < PER_SECOND:
            missed.append(f"{rate:,.0f} deliveries a second, not {PER_SECOND:,}.")
        missed += slowed(console, url, port, bearer, asked, seconds, loading)
    with tempfile.TemporaryDirectory() as folder, running(Settings(now=FROZEN.now, scenario="empty")) as live:
        with ExitStack() as stack:
            control = stack.enter_context(httpx2.Client(base_url=f"{live.url}/_sandbox", timeout=60, verify=NO_TLS))
            headers = {"Authorization": f"Bearer {created(control.post('/tokens', json={}))['token']}"}
            api = stack.enter_context(httpx2.Client(base_url=live.url, headers=headers, timeout=60, verify=NO_TLS))
            receiver = stack.enter_context(fickle(Path(folder), 0.2))
            came = flood(api, control, receiver, EVENTS)
        console.print(
            f"{EVENTS:,} events to a receiver that fails at random and is restarted: {came.deliveries:,} deliveries in "
            f"{came.attempts:,} attempts, {len(came.wrong)} of them wrong."
        )
        missed += came.wrong[:10]
    return missed


def sending_rate(url: str, folder: Path) -> float:
    """Deliveries a second, of very many that are due at once: those of a fork that was silent until now."""
    with ExitStack() as stack:
        receiver = stack.enter_context(fickle(folder, 0.0))
        control = stack.enter_context(httpx2.Client(base_url=f"{url}/_sandbox", timeout=60, verify=NO_TLS))
        made = created(control.post("/sandboxes/default/fork", json={"name": "silent"}))["sandbox"]
        api = stack.enter_context(client(f"{url}/s/silent", made["credentials"]["jwt"]))
        own = stack.enter_context(httpx2.Client(base_url=f"{url}/s/silent/_sandbox", timeout=60, verify=NO_TLS))
        pile(api, receiver.url, SENT)
        began = time.perf_counter()
        assert own.post("/webhooks/resume").json()["resumed"] >= SENT
        while not own.post("/webhooks/drain").json()["complete"]:
            pass
        took = time.perf_counter() - began
        assert len(receiver.received()) >= SENT
    return SENT / took


def slowed(
    console: Console, url: str, port: int, bearer: str, asked: list[Shot], seconds: float, core: int
) -> list[str]:
    """The API's times while nothing waits and while very much waits for a receiver that never answers."""
    measured = [shot for shot in asked if shot.name in ("GET one customer", "PUT customer")]
    for shot in measured:
        fire(shot, port, bearer, 0.3, core)
    idle = {shot.name: rounds(shot, port, bearer, seconds, core) for shot in measured}
    with socket.create_server(("127.0.0.1", 0), backlog=512) as dead, client(url, bearer) as api:
        pile(api, f"http://127.0.0.1:{dead.getsockname()[1]}/hook", QUEUED)
        waiting = api.get("/_sandbox/health").json()["deliveries"]["due"]
        busy = {shot.name: rounds(shot, port, bearer, seconds, core) for shot in measured}
    found = Table(title=f"p99 in ms, idle and with {waiting:,} deliveries that wait for a dead receiver")
    for column in ("operation", "idle", "waiting", "times"):
        found.add_column(column, justify="left" if column == "operation" else "right")
    missed = []
    for shot in measured:
        before, after = (statistics.median(r.p99 for r in results[shot.name]) for results in (idle, busy))
        found.add_row(shot.name, f"{before:.2f}", f"{after:.2f}", f"{after / before:.2f}")
        if after > SLOWER * before:
            missed.append(f"{shot.name}: p99 is {after / before:.2f} times as long with a dead receiver, not {SLOWER}.")
    console.print(found)
    return missed


def rounds(shot: Shot, port: int, bearer: str, seconds: float, core: int) -> list[Result]:
    """Several rounds of one operation."""
    return [fire(shot, port, bearer, seconds, core) for _ in range(ROUNDS)]


def client(url: str, bearer: str) -> httpx2.Client:
    """The API of a world."""
    return httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {bearer}"}, timeout=60, verify=NO_TLS)


def pile(api: httpx2.Client, receiver: str, count: int) -> None:
    """So many events for a new webhook."""
    created(api.post("/v2/webhooks", json={"url": receiver, "events": ["customer.created"]}))
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda _: created(api.post("/v2/customers", json=customer_body())), range(count)))


if __name__ == "__main__":
    serve(int(sys.argv[1]))
