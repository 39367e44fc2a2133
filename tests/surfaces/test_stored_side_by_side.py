"""--store while sandboxes of the same names come, go and are replaced at once, and its disk is full now and then."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

import httpx2
import pytest

from stub_server.domain.documents import cpf_with_check_digits
from stub_server.files.package import MEDIA
from stub_server.persistence.sqlite import DATABASE

from ..support.disk import Disk
from ..support.files import exported
from ..support.live import NO_TLS
from ..support.make import customer_body
from ..support.processes import PATIENCE, Process

pytestmark = pytest.mark.check

NAMES = ("default", "a", "b")
CLIENTS, SECONDS = 8, 6
Told = tuple[str, str, dict[str, Any] | None]


def changes(random: Random) -> Iterator[Told]:
    """What a client does."""
    while True:
        name, other = random.choice(NAMES), random.choice(NAMES[1:])
        own, snapshot = f"/s/{name}/_sandbox", random.choice("xy")
        options: list[list[Told]] = [
            [("POST", f"/s/{name}/v2/customers", None)],
            [("POST", f"{own}/reset", {"scenario": "empty"})],
            [("POST", f"/_sandbox/sandboxes/{name}/fork", {"name": other})],
            [("POST", f"{own}/snapshots", {"name": snapshot}), ("POST", f"{own}/snapshots/{snapshot}/restore", {})],
            [("DELETE", f"{own}/snapshots/{snapshot}", None)],
            [("DELETE", f"/_sandbox/sandboxes/{other}", None), ("DELETE", f"/_sandbox/sandboxes/{other}", None)],
            [("POST", "/_sandbox/sandboxes", {"name": other, "ttl_seconds": 1})],
            [("POST", f"{own}/rewind", {"to_step": random.randrange(20)})],
            [("GET", f"{own}/export", None), ("POST", f"{own}/import", None)],
        ]
        yield from random.choices(options, (30, 3, 4, 4, 2, 4, 3, 3, 1))[0]


async def use(client: httpx2.AsyncClient, random: Random, seen: Counter[str]) -> None:
    """Make requests until it is time; what is answered otherwise than it may be is `seen`."""
    until, file = monotonic() + SECONDS, b""
    for method, path, body in changes(random):
        if monotonic() > until:
            return
        headers, content = {}, None
        if path.endswith("/customers"):
            credentials = await client.get(path.replace("v2/customers", "_sandbox/credentials"))
            if credentials.status_code != 200:
                continue
            headers["Authorization"] = f"Bearer {credentials.json()['jwt']}"
            body = customer_body(document=cpf_with_check_digits(f"{random.randrange(10**9):09d}"))
        elif path.endswith("/import"):
            headers["Content-Type"], content = MEDIA, file
        answer = await client.request(method, path, json=body, headers=headers, content=content)
        file = answer.content if path.endswith("/export") else file
        code = answer.json()["code"] if answer.status_code >= 500 else ""
        seen[f"{answer.status_code} {code}"] += 1


async def side_by_side(server: Process, disk: Disk) -> Counter[str]:
    """Many clients at once, and a disk that is full now and then; answers what they were answered."""
    seen: Counter[str] = Counter()

    async def fill() -> None:
        for _ in range(SECONDS // 2 - 1):
            await asyncio.sleep(1.2)
            disk.fill()
            await asyncio.sleep(0.3)
            disk.make_room()

    async with httpx2.AsyncClient(base_url=server.url, verify=NO_TLS, timeout=PATIENCE) as client:
        await asyncio.gather(fill(), *(use(client, Random(number), seen) for number in range(CLIENTS)))
    return seen


def told(server: Process) -> dict[str, Any]:
    """What the sandboxes of a server are."""
    with server.control() as control:
        sandboxes = control.get("/sandboxes").json()["sandboxes"]
    found = {}
    for sandbox in sandboxes:
        with server.control(sandbox["name"]) as control:
            assert 200 == control.get("/invariants").status_code
            snapshots = control.get("/snapshots").json()["snapshots"]
            facts = (sandbox["parent"], sandbox["step"], [(one["name"], one["records"]) for one in snapshots])
            found[sandbox["name"]] = (exported(control), facts)
    return found


def left(folder: Path) -> tuple[int, ...]:
    """How many sandboxes a store has, how many states of them, and how many of snapshots."""
    counts = (
        "select count(*) from sandboxes",
        "select count(*) from states where name = ''",
        "select count(*) from states where name <> ''",
    )
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        return tuple(database.execute(count).fetchone()[0] for count in counts)


def test_what_is_there_afterwards_is_what_was_told_and_nothing_else(tmp_path: Path) -> None:
    with Process("--store", str(tmp_path / "store"), "--scenario", "empty", "--now", "2026-11-20T14:32:05Z") as server:
        seen = asyncio.run(side_by_side(server, Disk(server)))
        sleep(1.5)  # what lives for a second is gone
        before = told(server)
        snapshots = sum(len(facts[2]) for _, facts in before.values())
        expected, until = (len(before), len(before), snapshots), monotonic() + 10
        while left(tmp_path / "store") != expected and monotonic() < until:
            sleep(0.1)
        assert expected == left(tmp_path / "store")
        server.kill()
        server.start()
        assert before == told(server)
        assert "Traceback" not in server.stop()
    assert {"503 store_unavailable", "503 sandbox_unavailable"} >= {one for one in seen if one[0] == "5"}, seen
    assert seen["201 "] > 100
