"""`make bench ARGS=--webhooks`: how fast deliveries leave, what a dead receiver costs the API, and
if any is lost.
"""

import os
import socket
import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx2
from rich.console import Console
from rich.table import Table

from ..support.fickle import fickle
from ..support.live import NO_TLS
from ..support.make import HELD, created, customer_body
from .load import fire
from .servers import DELIVERING
from .target import Target, started

SENT = 5_000
QUEUED = 10_000
ROUNDS = 7
CLIENTS = 8
# What the sandbox holds itself to.
PER_SECOND = 1_000
SLOWER = 1.2


def measure(console: Console, cores: tuple[int, int], seconds: float) -> list[str]:
    """Measure and show; answers the promises that are not kept."""
    served, loading = cores
    missed = []
    with (
        started(DELIVERING, served) as idle,
        started(DELIVERING, served) as waiting,
        tempfile.TemporaryDirectory() as folder,
    ):
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {loading})
        missed += sending(console, idle, Path(folder))
        missed += waited_for(console, idle, waiting, seconds)
    return missed


def sending(console: Console, target: Target, folder: Path) -> list[str]:
    """Very many deliveries that are due at once: those of a fork that was silent until now.

    A core's worth of them is counted by the server's own CPU time where it is known, which no load
    can falsify.
    """
    with ExitStack() as stack:
        receiver = stack.enter_context(fickle(folder, 0.0))
        control = stack.enter_context(
            httpx2.Client(base_url=f"{target.url}/_sandbox", timeout=60, verify=NO_TLS)
        )
        made = created(control.post("/sandboxes/default/fork", json={"name": "silent"}))["sandbox"]
        api = stack.enter_context(client(f"{target.url}/s/silent", made["credentials"]["jwt"]))
        own = stack.enter_context(client(f"{target.url}/s/silent/_sandbox", target.token))
        pile(api, receiver.url, SENT)
        began = time.perf_counter()
        before = target.cpu()
        assert own.post("/webhooks/drain", json=HELD).json()["released"] >= SENT
        while not own.post("/webhooks/drain").json()["complete"]:
            pass
        took = time.perf_counter() - began
        after = target.cpu()
        assert len(receiver.received()) >= SENT
    busy = took if before is None or after is None else after - before
    console.print(
        f"Deliveries to a fast receiver: {SENT / took:,.0f} a second, {SENT / busy:,.0f} a second"
        " of CPU."
    )
    return (
        []
        if SENT / busy >= PER_SECOND
        else [f"{SENT / busy:,.0f} deliveries a second, not {PER_SECOND:,}."]
    )


def waited_for(console: Console, idle: Target, waiting: Target, seconds: float) -> list[str]:
    """The API's times where nothing waits, and where very much waits for a receiver that never
    answers.

    Two servers are asked in turn: two neighbouring rounds have met the machine in about the same
    mood.
    """
    measured = [shot for shot in idle.shots if shot.name in ("GET one customer", "PUT customer")]
    found = Table(title=f"p99 in ms, idle and with {QUEUED:,} deliveries to a dead receiver")
    for column in ("operation", "idle", "waiting", "times"):
        found.add_column(column, justify="left" if column == "operation" else "right")
    missed = []
    with (
        socket.create_server(("127.0.0.1", 0), backlog=512) as dead,
        client(waiting.url, waiting.token) as api,
    ):
        pile(api, f"http://127.0.0.1:{dead.getsockname()[1]}/hook", QUEUED)
        for shot in measured:
            pairs = [
                tuple(
                    fire(shot, target.port, target.token, seconds).p99 for target in (idle, waiting)
                )
                for _ in range(ROUNDS + 1)
            ][1:]
            before, after = (statistics.median(times) for times in zip(*pairs, strict=True))
            times = statistics.median(second / first for first, second in pairs)
            found.add_row(shot.name, f"{before:.2f}", f"{after:.2f}", f"{times:.2f}")
            if times > SLOWER:
                missed.append(
                    f"{shot.name}: p99 is {times:.2f} times as long with a dead receiver, not"
                    f" {SLOWER}."
                )
        due = api.get("/_sandbox/health").json()["deliveries"]["due"]
        assert due > QUEUED * 0.9, f"only {due} deliveries wait"
    console.print(found)
    return missed


def client(url: str, bearer: str) -> httpx2.Client:
    """The API of a world."""
    return httpx2.Client(
        base_url=url, headers={"Authorization": f"Bearer {bearer}"}, timeout=60, verify=NO_TLS
    )


def pile(api: httpx2.Client, receiver: str, count: int) -> None:
    """So many events for a new webhook."""
    created(api.post("/v2/webhooks", json={"url": receiver, "events": ["customer.created"]}))
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(
            pool.map(
                lambda _: created(api.post("/v2/customers", json=customer_body())), range(count)
            )
        )
