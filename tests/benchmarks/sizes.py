"""What size costs: seeding, memory and reads of the `busy` world at a thousand to a million orders.

Every size has a process of its own, so that none measures what another has left in memory. Times
are CPU times.
"""

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from stub_server.app import create_app
from stub_server.engine.tables.store import Store
from stub_server.server.layers.routing import Application
from stub_server.settings import Settings

from .footprint import resident, table_bytes
from .world import token

SIZES = (1_000, 10_000, 100_000)
MILLION = 1_000_000
NOW = 1_795_000_000_000
ROUNDS = 9
REQUESTS = 20
# What the sandbox holds itself to.
FASTEST = 4_000
LARGEST = 3_584
STEEPEST = 2.0
BUSY = Path(__file__).parents[2] / "fixtures" / "scenarios" / "busy.yaml"


def scenario(orders: int, folder: Path) -> Path:
    """The `busy` scenario with so many orders and a fifth as many customers."""
    text = BUSY.read_text(encoding="utf-8")
    text = re.sub(r"(?m)^customers: .*$", f"customers: {orders // 5}", text)
    text = re.sub(r"(?m)^orders: .*$", f"orders: {orders}", text)
    text = re.sub(r"(?m)^pending: .*$", f"pending: {min(1000, orders * 6 // 1000)}", text)
    path = folder / f"busy-{orders}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def reads(store: Store) -> dict[str, str]:
    """What is asked, on records that every size has."""
    orders = store.orders
    total = len(orders)
    sample = max(store.projects.keys, key=lambda ident: orders.count("projectId", ident))
    plan = max(store.plans.keys, key=lambda ident: orders.count("planId", ident))
    # Somebody with as many orders in every size: what a page holds is a part of what it costs.
    customer = min(
        store.customers.keys, key=lambda ident: abs(orders.count("customerId", ident) - 5)
    )
    held = orders.rows[orders.order[total // 2]]
    middle = json.loads(held.public)["createdAt"]
    deep = total // 40
    deep_paid = orders.count("status", "paid") // 40
    page = "/v2/orders?limit=20"
    return {
        "orders, first page": page,
        "orders, middle page": f"{page}&page={deep}",
        "orders, last page": f"{page}&page={total // 20}",
        "orders by status": f"{page}&status=paid",
        "orders by status, middle page": f"{page}&status=paid&page={deep_paid}",
        "orders by project": f"{page}&projectId={sample}",
        "orders by project and status": f"{page}&projectId={sample}&status=paid",
        "orders by plan": f"{page}&planId={plan}",
        "orders by customer": f"{page}&customerId={customer}",
        "orders by method": f"{page}&paymentMethod=pix",
        "orders by method and status": f"{page}&paymentMethod=pix&status=paid",
        "orders since the middle": f"{page}&created_since={middle}",
        "orders until the middle, page 9": f"{page}&created_until={middle}&page=9",
        "orders by amount": f"{page}&sort=totalAmount",
        "orders by amount, middle page": f"{page}&sort=-totalAmount&page={deep}",
        "paid orders by amount": f"{page}&status=paid&sort=-totalAmount&page={deep_paid}",
        "one order": f"/v2/orders/{held.id}",
        "one customer": f"/v2/customers/{customer}",
        "customers, middle page": f"/v2/customers?limit=20&page={len(store.customers) // 40}",
        "one project, with its counters": f"/v2/projects/{sample}",
        "a project's figures": f"/v2/projects/{sample}/stats",
    }


async def ask(app: Application, path: str, bearer: str, times: int) -> float:
    """CPU µs per request, in process, through everything but the socket."""
    plain, _, query = path.partition("?")
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": plain,
        "query_string": query.encode(),
        "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"127.0.0.1:4600"), (b"authorization", b"Bearer " + bearer.encode())],
    }
    status = [0]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        status[0] = message.get("status", status[0])

    began = time.process_time_ns()
    for _ in range(times):
        await app(dict(scope), receive, send)
    spent = (time.process_time_ns() - began) / 1_000 / times
    if status[0] != 200:
        raise RuntimeError(f"{path} answered {status[0]}")
    return spent


def one(orders: int) -> dict[str, Any]:
    """All measures of one size."""
    create_app(Settings(now=NOW))  # names, schemas and code that all worlds share
    before = resident()
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        app = create_app(Settings(scenario=str(scenario(orders, Path(folder))), now=NOW))
        whole = time.process_time() - began
        began = time.process_time()
        create_app(Settings(scenario="empty", now=NOW))
        spent = whole - (time.process_time() - began)
    store = app.sandboxes.default.store
    records = sum(store.counts().values())
    memory = resident() - before
    bearer = token(app)
    first = {}
    best = {}
    for name, path in reads(store).items():
        first[name] = asyncio.run(ask(app, path, bearer, 1))
        best[name] = min(asyncio.run(ask(app, path, bearer, REQUESTS)) for _ in range(ROUNDS))
    return {
        "orders": len(store.orders),
        "records": records,
        "a second": records / spent,
        "memory": memory,
        "order": table_bytes(store.orders) / len(store.orders),
        "first": first,
        "reads": best,
    }


def measure(*, million: bool) -> list[dict[str, Any]]:
    """Every size in a process of its own."""
    found = []
    for size in (*SIZES, MILLION) if million else SIZES:
        command = [sys.executable, "-m", "tests.benchmarks.sizes", str(size)]
        found.append(
            json.loads(
                subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            )
        )
    return found


def sizes_table(found: list[dict[str, Any]]) -> Table:
    """A column per size; the last one is the cost at the largest over the cost at the smallest."""
    shown = Table(
        title=(
            "The busy world by number of orders; reads in µs of CPU per request, best of several"
            " rounds"
        )
    )
    shown.add_column("")
    for size in found:
        shown.add_column(f"{size['orders']:,}", justify="right")
    shown.add_column("x", justify="right")
    shown.add_row("records seeded", *(f"{size['records']:,}" for size in found), "")
    shown.add_row("seeded a second", *(f"{size['a second']:,.0f}" for size in found), "")
    shown.add_row("MiB, the whole world", *(f"{size['memory'] / 2**20:,.0f}" for size in found), "")
    shown.add_row(
        "bytes, world / orders", *(f"{size['memory'] / size['orders']:,.0f}" for size in found), ""
    )
    shown.add_row(
        "bytes an order, with its indexes",
        *(f"{size['order']:,.0f}" for size in found),
        "",
        end_section=True,
    )
    for name in found[0]["reads"]:
        costs = [size["reads"][name] for size in found]
        shown.add_row(name, *(f"{cost:.1f}" for cost in costs), f"{costs[-1] / costs[0]:.2f}")
    shown.add_section()
    for name in ("orders by method and status", "paid orders by amount"):
        shown.add_row(
            f"{name}, asked first", *(f"{size['first'][name]:,.0f}" for size in found), ""
        )
    return shown


def missed(found: list[dict[str, Any]]) -> list[str]:
    """The promises about size that the sandbox does not keep.

    Small worlds are seeded too fast to be timed.
    """
    last = found[-1]
    lines = []
    if last["a second"] < FASTEST:
        lines.append(f"Seeding: {last['a second']:,.0f} records a second, not {FASTEST:,}.")
    if last["order"] > LARGEST:
        lines.append(f"Memory: {last['order']:,.0f} bytes an order, not {LARGEST:,}.")
    for name, cost in last["reads"].items():
        times = cost / found[0]["reads"][name]
        if times > STEEPEST:
            lines.append(
                f"{name}: {times:.1f} times the cost at {last['orders']:,} orders, not"
                f" {STEEPEST:.0f}."
            )
    return lines


if __name__ == "__main__":
    click.echo(json.dumps(one(int(sys.argv[1]))))
