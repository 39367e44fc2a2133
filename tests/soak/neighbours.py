"""What a sandbox feels of a heavy neighbour: `python -m tests.soak.neighbours`.

Each burden has a server of its own. A client of another sandbox asks all the time, alone at first
and then beside the
burden: its p99 may be so much longer then, and no more. Where webhooks are part of it, a healthy
receiver of that sandbox must be told in time.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter
from types import MappingProxyType

import click
import httpx2
from rich.console import Console
from rich.table import Table

from .run import quantile, started
from .scene import order
from .wire import Client

MORE = 50.0  # ms that the p99 of a neighbour may be longer
TOLD_IN = 1.0  # seconds until a healthy receiver is told
QUIET = 4.0  # seconds alone
PAUSE = 0.02
HEAVY = "/s/heavy"
LIGHT = "/s/light"


@dataclass(slots=True)
class Street:
    """A server, and what the neighbour has seen so far: times in ms, of answers and
    of deliveries.
    """

    port: int
    tokens: dict[str, str] = field(default_factory=dict)
    sample: dict[str, dict[str, str]] = field(default_factory=dict)
    waits: list[float] = field(default_factory=list)
    told: list[float] = field(default_factory=list)
    raised: dict[str, float] = field(default_factory=dict)
    healthy: str = ""
    refused: int = 0

    async def ask(
        self, world: str, method: str, path: str, body: object = None, client: Client | None = None
    ) -> int:
        """A request with the token of a world, on a connection of its own; answers the status."""
        one = client or Client(self.port)
        answer = await one.ask(method, world + path, body, self.tokens.get(world))
        if client is None:
            one.close()
        return answer.status

    async def meet(self, world: str, scenario: str) -> None:
        """Have a world be there."""
        client = Client(self.port)
        made = await client.ask(
            "POST", "/_sandbox/sandboxes", {"name": world[3:], "scenario": scenario}
        )
        assert made.status == 201, made
        credentials = (await client.ask("GET", f"{world}/_sandbox/credentials")).json()
        self.tokens[world] = credentials["jwt"]
        self.sample[world] = credentials["sample"]
        client.close()

    async def listens(self, world: str, url: str, event: str) -> None:
        """Have a webhook of a world be there."""
        assert await self.ask(world, "POST", "/v2/webhooks", {"url": url, "events": [event]}) == 201

    async def live(self) -> None:
        """The neighbour: a reading, and now and then a customer whom its healthy receiver
        is told of.
        """
        client = Client(self.port)
        number = 0
        while True:
            number += 1
            path = (
                "/v2/customers?limit=5"
                if number % 2
                else f"/v2/customers/{self.sample[LIGHT]['customerId']}"
            )
            began = perf_counter()
            self.refused += await self.ask(LIGHT, "GET", path, client=client) != 200
            self.waits.append((perf_counter() - began) * 1000)
            if number % 10 == 0:
                name = f"N{perf_counter():.6f}"
                self.raised[name] = perf_counter()
                body = {"customer": name}
                path = f"/v2/customers/{self.sample[LIGHT]['customerId']}"
                self.refused += (
                    await self.ask(LIGHT, "PUT", path, {"metadata": body}, client) != 200
                )
            await asyncio.sleep(PAUSE)


Burden = Callable[[Street], Awaitable[None]]


async def a_year(street: Street) -> None:
    """The clock of a busy sandbox goes a year."""
    assert await street.ask(HEAVY, "PATCH", "/_sandbox/clock", {"frozen": True}) == 200
    await _prepared(street)
    await _travels(street, 365)


async def expiring_orders(street: Street, webhooks: int = 15, orders: int = 8_000) -> None:
    """Thousands of orders expire at once, and simulated receivers are told of each."""
    client = Client(street.port)
    assert (
        await street.ask(HEAVY, "PATCH", "/_sandbox/clock", {"frozen": True}, client=client) == 200
    )
    for number in range(webhooks):
        await street.listens(HEAVY, f"https://hooks{number}.example.com/all", "order.expired")
    credentials = {"sample": street.sample[HEAVY]}
    for number in range(orders):
        assert (
            await street.ask(HEAVY, "POST", "/v2/orders/pix", order(credentials, number), client)
            == 201
        )
    client.close()
    await _prepared(street)
    await _travels(street, 2)


def _control(method: str, path: str, body: object = None) -> Burden:
    async def often(street: Street) -> None:
        await _prepared(street)
        for _ in range(3):
            await street.ask(HEAVY, method, path, body)

    return often


async def forks(street: Street) -> None:
    """Copies of a busy sandbox."""
    await _prepared(street)
    for number in range(10):
        assert (
            await street.ask(
                "", "POST", f"/_sandbox/sandboxes{HEAVY[2:]}/fork", {"name": f"f{number}"}
            )
            == 201
        )


async def carries(street: Street) -> None:
    """A busy sandbox goes into a file, and comes back."""
    await _prepared(street)
    base = f"http://127.0.0.1:{street.port}{HEAVY}/_sandbox"
    kind = "application/vnd.stub.sandbox+gzip"
    async with httpx2.AsyncClient(timeout=60) as client:
        carried = (await client.get(f"{base}/export")).content
        back = await client.post(f"{base}/import", content=carried, headers={"Content-Type": kind})
    assert back.is_success, back.text


async def rewinds(street: Street) -> None:
    """A busy sandbox goes back over some hundred steps, and forth again, fifty times."""
    client = Client(street.port)
    ident = street.sample[HEAVY]["customerId"]
    for number in range(300):
        path = f"/v2/customers/{ident}"
        assert await street.ask(HEAVY, "PUT", path, {"metadata": {"n": str(number)}}, client) == 200
    newest = (await client.ask("GET", f"{HEAVY}/_sandbox/steps?limit=1")).json()["steps"][0]
    await _prepared(street)
    for step in [10, newest["step"]] * 25:
        body = {"to_step": step}
        assert await street.ask(HEAVY, "POST", "/_sandbox/rewind", body, client) == 200
    client.close()


async def _travels(street: Street, days: int) -> None:
    """The clock goes so many days, however long that takes."""
    client = Client(street.port)
    moved = await client.ask(
        "POST", f"{HEAVY}/_sandbox/clock/advance", {"days": days, "wait_seconds": 0}
    )
    assert moved.status == 200, moved
    while not (await client.ask("GET", f"{HEAVY}/_sandbox/clock")).json()["complete"]:
        await asyncio.sleep(0.2)
    client.close()


async def _prepared(street: Street) -> None:
    """From here on it counts: what a burden has to prepare does not."""
    await asyncio.sleep(0.5)
    street.waits.clear()
    street.told.clear()


BURDENS: Mapping[str, tuple[str, Burden]] = MappingProxyType(
    {
        "a year of busy": ("busy", a_year),
        "8,000 orders expire": ("default", expiring_orders),
        "invariants of busy": ("busy", _control("GET", "/_sandbox/invariants")),
        "reset of busy": ("busy", _control("POST", "/_sandbox/reset")),
        "another seed of busy": ("busy", _control("POST", "/_sandbox/reset", {"seed": 7})),
        "forks of busy": ("busy", forks),
        "rewind of busy": ("busy", rewinds),
        "export and import of busy": ("busy", carries),
    }
)


@asynccontextmanager
async def receiver(street: Street) -> AsyncIterator[None]:
    """A healthy receiver, which notes when it is told."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                body = await reader.readexactly(length)
                for name in [name for name in street.raised if name.encode() in body]:
                    street.told.append((perf_counter() - street.raised.pop(name)) * 1000)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    street.healthy = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    try:
        yield
    finally:
        server.close()


async def measured(
    port: int, scenario: str, burden: Burden
) -> tuple[list[float], list[float], list[float], int]:
    """The neighbour's times alone and beside a burden, those of its deliveries, and how
    many were refused.
    """
    street = Street(port)
    async with receiver(street):
        await street.meet(HEAVY, scenario)
        await street.meet(LIGHT, "default")
        await street.listens(LIGHT, street.healthy, "customer.updated")
        living = asyncio.create_task(street.live())
        await asyncio.sleep(1)
        street.waits.clear()
        await asyncio.sleep(QUIET)
        quiet = sorted(street.waits)
        await burden(street)
        # a burden may be over before the next reading
        waits = sorted(street.waits) or [0.0]
        told = sorted(street.told)
        oldest = max(
            [(perf_counter() - since) * 1000 for since in street.raised.values()], default=0.0
        )
        living.cancel()
        if living.done():
            living.result()
    return quiet, waits, [*told, oldest], street.refused


@click.command()
@click.argument("names", nargs=-1)
def main(names: tuple[str, ...]) -> None:
    """Measure all burdens, or those whose name has one of these words."""
    console = Console(width=120)
    failures = 0
    table = Table(title="ms of a client of another sandbox")
    for name in (
        "burden",
        "quiet p99",
        "p50",
        "p99",
        "longest",
        "answers",
        "refused",
        "told after",
    ):
        table.add_column(name, justify="left" if name == "burden" else "right")
    for name, (scenario, burden) in BURDENS.items():
        if names and not any(word in name for word in names):
            continue
        with started() as server:
            quiet, waits, told, refused = asyncio.run(measured(server.port, scenario, burden))
        before = quantile(quiet, 0.99)
        after = quantile(waits, 0.99)
        longest = max(told, default=0.0)
        fails = after > before + MORE or longest > TOLD_IN * 1000 or refused > 0
        failures += fails
        figures = [f"{value:.1f}" for value in (before, quantile(waits, 0.5), after, waits[-1])]
        table.add_row(
            f"{'[red]' if fails else ''}{name}",
            *figures,
            str(len(waits)),
            str(refused),
            f"{longest:.0f}",
        )
    console.print(table)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
