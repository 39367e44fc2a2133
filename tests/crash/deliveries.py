"""Very many events while their receiver fails at random and the server is killed in between."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import httpx2
import orjson

from ..support.fickle import fickle
from ..support.make import created, customer_body
from ..support.processes import Process

CLIENTS = 4
MOST_MOVES = 80


class Came(NamedTuple):
    """How many events were acknowledged, which of them never arrived, and how many arrived again
    after a success.
    """

    events: int
    missing: list[str]
    repeated: int


def flooded(folder: Path, events: int, kills: int, share: float = 0.2) -> Came:
    """Make so many events, kill the server so often on the way, and let time bring all deliveries
    to an end.
    """
    acknowledged: list[str] = []
    flags = (
        "--store",
        str(folder / "store"),
        "--scenario",
        "empty",
        "--now",
        "2026-11-20T14:32:05.123Z",
    )
    with fickle(folder, share) as receiver, Process(*flags) as server:
        with server.api() as api:
            created(
                api.post("/v2/webhooks", json={"url": receiver.url, "events": ["customer.created"]})
            )
        for part in range(kills + 1):
            with server.api() as api, ThreadPoolExecutor(CLIENTS) as pool:
                count = events // (kills + 1) if part < kills else events - len(acknowledged)
                bodies = [customer_body() for _ in range(count)]
                half = len(bodies) // 2
                acknowledged += pool.map(lambda body: _made(api, body), bodies[:half])
                if part < kills:
                    pending = [pool.submit(_tried, api, body) for body in bodies[half:]]
                    pending[len(pending) // 2].result()
                    server.kill()
                    acknowledged += [
                        ident for made in pending if (ident := made.result()) is not None
                    ]
                else:
                    acknowledged += pool.map(lambda body: _made(api, body), bodies[half:])
            if part < kills:
                server.start()
        with server.control() as control:
            _finish(control)
        arrived: Counter[str] = Counter()
        for requests in receiver.received().values():
            for request in requests:
                if request["status"] == 200:
                    arrived[orjson.loads(request["body"])["data"]["customer"]["id"]] += 1
    missing = [ident for ident in acknowledged if not arrived[ident]]
    return Came(len(acknowledged), missing, sum(count - 1 for count in arrived.values()))


def _made(api: httpx2.Client, body: object) -> str:
    return str(created(api.post("/v2/customers", json=body))["customer"]["id"])


def _tried(api: httpx2.Client, body: object) -> str | None:
    """The id of a new customer; None where the server died over it."""
    try:
        return _made(api, body)
    except httpx2.TransportError:
        return None


def _finish(control: httpx2.Client) -> None:
    """Let the sandbox's time pass until nothing is to be sent any more."""
    for _ in range(MOST_MOVES):
        drained = control.post("/webhooks/drain").json()
        clock = control.get("/clock").json()
        if drained["complete"] and clock["next_due"] is None:
            return
        if drained["complete"]:
            assert control.post("/clock/advance", json={"to": clock["next_due"]}).status_code == 200
    raise AssertionError("deliveries do not come to an end")
