"""`make bench ARGS=--controls`: what going back by 10,000 steps costs, how long it holds up others, and a reset."""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import uvicorn
from rich.console import Console
from rich.table import Table

from stub_server.app import create_app
from stub_server.engine import bounded as logs
from stub_server.http.monitor import ConnectionMonitor, Limits
from stub_server.serving import calm_collector, listen, uvicorn_config, with_port

from ..support.live import FROZEN, NO_TLS
from ..support.make import created, customer_body
from .world import token

STEPS = 10_000
CLIENTS = 8
ROUNDS = 7
PULSE = 0.002  # seconds between two looks at how much the event loop's thread has worked
# What the sandbox holds itself to, in ms.
GOING_BACK = 1_000
HOLD = 50
RESET = 10


@dataclass(frozen=True, slots=True)
class Target:
    """A server that is running, and tells how long its event loop was held up."""

    process: "subprocess.Popen[str]"
    url: str
    token: str

    def longest_hold(self) -> float:
        """The most work (ms of CPU) that the event loop did in one go since this was asked last."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


class Pulse:
    """Looks again and again how much CPU the event loop's thread has used since the last look.

    Others on the machine cannot falsify that, and two slices between two looks count as one.
    """

    def __init__(self) -> None:
        self.longest = 0.0

    async def beat(self) -> None:
        """Look until cancelled."""
        last = time.thread_time()
        while True:
            await asyncio.sleep(PULSE)
            now = time.thread_time()
            self.longest, last = max(self.longest, now - last), now

    def answer(self) -> None:
        """Tell the parent what it asks for."""
        for _ in sys.stdin:
            longest, self.longest = self.longest, 0.0
            print(longest * 1000, flush=True)


@contextmanager
def started(core: int) -> Iterator[Target]:
    """The server in a process of its own, on a core of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.controls", str(core)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield Target(process, f"http://127.0.0.1:{told['port']}", told["token"])
    finally:
        process.terminate()
        process.wait()


def serve(core: int) -> None:
    """Serve on a free port, tell the parent, and answer what it asks."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    logs.MOST_BYTES = 1 << 30  # so many steps are gone back again and again, and each time is a step
    settings = replace(FROZEN, port=0, history=STEPS * 10)
    with listen(settings) as (listener,):
        settings = with_port(settings, listener)
        app = create_app(settings)
        app.sandboxes.default.log.budget.most = 1 << 34
        print(json.dumps({"port": settings.port, "token": token(app)}), flush=True)
        calm_collector()
        server, pulse = uvicorn.Server(uvicorn_config(app, ConnectionMonitor(Limits()))), Pulse()
        threading.Thread(target=pulse.answer, daemon=True).start()

        async def run() -> None:
            beating = asyncio.create_task(pulse.beat())
            await server.serve([listener])
            beating.cancel()

        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(run())


def measure(console: Console, cores: tuple[int, int]) -> list[str]:
    """Measure and show; answers the promises that are not kept."""
    served, loading = cores
    with started(served) as target:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {loading})
        headers = {"Authorization": f"Bearer {target.token}"}
        with (
            httpx2.Client(base_url=target.url, headers=headers, timeout=60, verify=NO_TLS) as api,
            httpx2.Client(base_url=f"{target.url}/_sandbox", timeout=60, verify=NO_TLS) as control,
        ):
            return _measure(console, target, api, control)


def _measure(console: Console, target: Target, api: httpx2.Client, control: httpx2.Client) -> list[str]:
    found = Table(title=f"After {STEPS:,} steps: medians and the longest hold of the event loop, in ms")
    for column in ("control", "median", "longest hold"):
        found.add_column(column, justify="left" if column == "control" else "right")
    missed = []

    def timed(name: str, most: float, call: Callable[[], httpx2.Response], then: Callable[[], object]) -> None:
        took, holds = [], []
        for _ in range(ROUNDS):
            target.longest_hold()
            began = time.perf_counter()
            response = call()
            took.append((time.perf_counter() - began) * 1000)
            holds.append(target.longest_hold())
            assert response.is_success, response.text
            then()
        found.add_row(name, f"{statistics.median(took):,.1f}", f"{max(holds):,.1f}")
        if statistics.median(took) > most:
            missed.append(f"{name}: {statistics.median(took):,.0f} ms, not {most:,}.")
        if max(holds) > HOLD:
            missed.append(f"{name}: the event loop was held for {max(holds):,.0f} ms, not {HOLD}.")

    def step() -> int:
        return int(control.get("/steps", params={"limit": 1}).json()["steps"][0]["step"])

    def rewind(number: int) -> httpx2.Response:
        return control.post("/rewind", json={"to_step": number})

    created(control.post("/snapshots", json={"name": "empty"}))
    work(api, STEPS)
    newest = step()
    created(control.post("/snapshots", json={"name": "full"}))
    write = _one_more(api)
    number = iter(range(newest - STEPS, newest))
    timed(
        "GET as of a step",
        GOING_BACK,
        lambda: api.get("/v2/customers", headers={"X-Sandbox-As-Of": str(next(number))}),
        lambda: None,
    )
    timed("rewind of all", GOING_BACK, lambda: rewind(newest - STEPS), lambda: (write(), rewind(newest), write()))
    timed("undo of that", GOING_BACK, lambda: rewind(newest), lambda: None)
    rewind(newest - STEPS)
    timed("restore, full", GOING_BACK, lambda: control.post("/snapshots/full/restore"), lambda: back(control, "empty"))
    back(control, "full")
    timed("restore, empty", GOING_BACK, lambda: control.post("/snapshots/empty/restore"), lambda: back(control, "full"))
    timed("snapshot", GOING_BACK, lambda: control.post("/snapshots", json={"name": "more"}), write)
    fork: dict[str, Any] = {"ttl_seconds": 60}
    timed("fork", GOING_BACK, lambda: control.post("/sandboxes/default/fork", json=fork), write)
    timed("reset", RESET, lambda: control.post("/reset"), write)
    console.print(found)
    return missed


def back(control: httpx2.Client, name: str) -> None:
    """Restore a snapshot, untimed."""
    assert control.post(f"/snapshots/{name}/restore").is_success


def _one_more(api: httpx2.Client) -> Callable[[], object]:
    return lambda: created(api.post("/v2/customers", json=customer_body()))


def work(api: httpx2.Client, count: int) -> None:
    """So many steps: customers, of whom each is changed once."""

    def one(_: int) -> None:
        made = created(api.post("/v2/customers", json=customer_body()))["customer"]
        assert api.put(f"/v2/customers/{made['id']}", json={"name": "Outra Pessoa"}).is_success

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(one, range(count // 2)))


if __name__ == "__main__":
    serve(int(sys.argv[1]))
