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

from stub_server.console.data_pages import RESOURCES
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
        paths = _paths(client, sample["jwt"], order, request)
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


def _paths(client: httpx2.Client, jwt: str, order: str, request: str) -> dict[str, str]:
    """Every page by name, with a rule, a webhook and its delivery to look at."""
    with httpx2.Client(base_url=client.base_url, verify=NO_TLS, headers={"Authorization": f"Bearer {jwt}"}) as api:
        hook = {"url": str(client.base_url).rstrip("/") + "/_sandbox/inbox/shop", "events": ["*"]}
        webhook = api.post("/v2/webhooks", json=hook).raise_for_status().json()["webhook"]["id"]
        log = api.post(f"/v2/webhooks/{webhook}/test").raise_for_status().json()["log"]
        subscription = api.get("/v2/subscriptions?limit=1").json()["subscriptions"][0]["id"]
    client.post("/_sandbox/faults", json={"preset": "flaky", "match": {"path": "/nowhere"}}).raise_for_status()
    event = client.get("/_sandbox/events?limit=1").json()["events"][0]["id"]
    lists = {name.replace("_", " "): f"/console/data/{name}" for name in RESOURCES}
    return {
        "front page": "/",
        "an operation": "/docs/createPixOrder",
        "requests": "/console/requests",
        "one request": f"/console/requests/{request}",
        "data": "/console/data",
        **lists,
        "orders by state": "/console/data/orders?status=paid",
        "orders by text": "/console/data/orders?search=silva",
        "one order": f"/console/data/orders/{order}",
        "one subscription": f"/console/data/subscriptions/{subscription}",
        "a new order": "/console/data/orders/new/createPixOrder",
        "clock": "/console/clock",
        "events": "/console/events",
        "one event": f"/console/events/{event}",
        "webhooks of the console": "/console/webhooks",
        "one webhook": f"/console/webhooks/{webhook}",
        "one delivery": f"/console/webhooks/deliveries/{log['id']}",
        "inboxes": "/console/inboxes",
        "one inbox": "/console/inboxes/shop",
        "one message": "/console/inboxes/shop/1",
        "sandboxes": "/console/sandboxes",
        "faults": "/console/faults",
        "keys": "/console/keys",
        "found by id": f"/console/find?q={order}",
        "the page of a payer": f"/pay/{order}",
    }


def _beside(client: httpx2.Client, path: str) -> tuple[float, float]:
    """What a page takes, and what the calls take that it names."""
    text = client.get(path, follow_redirects=True).raise_for_status().text
    calls = []
    for command in _COMMAND.findall(text.partition('class="behind"')[2]):
        words = shlex.split(unescape(command))
        headers = dict(words[place + 1].split(": ", 1) for place, word in enumerate(words) if word == "-H")
        calls.append((next(word for word in words if word.startswith("http")), headers))

    def ask() -> None:
        for url, headers in calls:
            client.get(url, headers=headers).raise_for_status()

    return spent(lambda: client.get(path, follow_redirects=True).raise_for_status()), spent(ask)
