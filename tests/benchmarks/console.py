"""What the pages of the console cost beside the calls that they make, in a sandbox of a hundred thousand orders."""

import re
import shlex
import tempfile
import time
from collections.abc import Callable
from html import unescape
from pathlib import Path
from statistics import median

import httpx2
from rich.console import Console
from rich.table import Table

from stub_server.settings import Settings

from ..support.live import NO_TLS, running
from .sizes import NOW, scenario

ORDERS, ROUNDS = 100_000, 5
MOST = 100  # ms of a page beside its calls
_COMMAND = re.compile(r'<div class="command"><pre[^>]*>(curl .*?)</pre>', re.DOTALL)


def spent(work: Callable[[], object]) -> float:
    """Milliseconds, the median of several rounds after a first one."""
    work()
    rounds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        rounds.append((time.perf_counter() - began) * 1000)
    return median(rounds)


def measure(console: Console) -> list[str]:
    """Measure and show; answers the pages that cost too much."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Settings(scenario=str(scenario(ORDERS, Path(folder))), now=NOW)) as live,
        httpx2.Client(base_url=live.url, verify=NO_TLS, timeout=60) as client,
    ):
        sample = client.get("/_sandbox/credentials").json()
        order = sample["sample"]["orderId"]
        client.post(f"/_sandbox/orders/{order}/pay").raise_for_status()
        client.put(f"/v2/orders/{order}", headers={"Authorization": f"Bearer {sample['jwt']}"})
        request = client.get("/_sandbox/requests?limit=1").json()["requests"][0]["id"]
        paths = {
            "requests": "/console/requests",
            "one request": f"/console/requests/{request}",
            "data": "/console/data",
            "orders": "/console/data/orders?status=paid",
            "orders by text": "/console/data/orders?search=silva",
            "one order": f"/console/data/orders/{order}",
        }
        shown = Table(title=f"Pages of a sandbox of {ORDERS:,} orders, ms, medians of {ROUNDS}")
        shown.add_column("page")
        for column in ("page", "its calls", "beside them"):
            shown.add_column(column, justify="right")
        missed = []
        for name, path in paths.items():
            page, calls = _beside(client, path)
            shown.add_row(name, f"{page:.1f}", f"{calls:.1f}", f"{page - calls:.1f}")
            if page - calls > MOST:
                missed.append(f"The page of {name}: {page - calls:.0f} ms beside its calls, not {MOST}.")
        console.print(shown)
    return missed


def _beside(client: httpx2.Client, path: str) -> tuple[float, float]:
    """What a page takes, and what the calls take that it names."""
    text = client.get(path).raise_for_status().text
    calls = []
    for command in _COMMAND.findall(text[text.index('class="behind"') :]):
        words = shlex.split(unescape(command))
        headers = dict(words[place + 1].split(": ", 1) for place, word in enumerate(words) if word == "-H")
        calls.append((next(word for word in words if word.startswith("http")), headers))

    def ask() -> None:
        for url, headers in calls:
            client.get(url, headers=headers).raise_for_status()

    return spent(lambda: client.get(path).raise_for_status()), spent(ask)
