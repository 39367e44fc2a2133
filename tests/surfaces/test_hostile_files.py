"""What files, patterns and forgotten requests of strangers must not cost a server."""

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

import httpx2
import pytest

from stub_server.storage import fitting
from stub_server.storage.package import MEDIA

from ..support.cost import measured, slowness
from ..support.files import HEADERS, exported, imported, lines, sealed
from ..support.live import NO_TLS, Live, small_scenario
from ..support.make import created
from ..support.processes import Process

pytestmark = pytest.mark.check
NOW = ("--now", "2026-11-20T14:32:05.123Z")
ASYNC = {"Prefer": "respond-async"}
MANY = 60_000
MIB = 1024


def memory_of(process: Process) -> int:
    """What a process has, in KiB."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def attempts(file: bytes, count: int) -> bytes:
    """The file of a sandbox with attempts of deliveries that are not there, which are due."""
    head, (kind, sandbox), *rest = [line for line in lines(file) if line[0] != "step"]
    last = sandbox["timers_set"]
    due = sandbox["clock"]["now"] + 1
    timer = {"due": due, "job": "webhook.attempt", "merchant_id": sandbox["home"]}
    added = []
    for number in range(last + 1, last + 1 + count):
        subject = f"00000000-0000-4000-8000-{number:012}"
        added.append(("timer", timer | {"seq": number, "subject": subject}))
    return sealed([head, (kind, sandbox | {"timers_set": last + count}), *rest, *added])


@pytest.mark.promise("nothing-request-costs-more-length")
def test_attempts_of_deliveries_that_are_gone_hold_nobody_up() -> None:
    """A million of them held everybody for 600 ms."""
    with measured() as server:
        door = server.door
        file = attempts(door.ask("GET", "/_sandbox/export").body, MANY)
        answer = door.ask("POST", "/_sandbox/import", file, media=MEDIA)
        assert 200 == answer.status, answer.body[:300]

        def advance() -> None:
            assert 200 == door.send("POST", "/_sandbox/clock/advance", {"seconds": 5}).status

        assert server.heart.cost_of(advance).hold <= 0.05 * slowness()


def test_a_file_of_too_many_timers_is_refused(small: Live) -> None:
    """Requests look at all of them."""
    address = f"{small.url}/s/timers/_sandbox"
    with (
        httpx2.Client(base_url=address, verify=NO_TLS) as control,
        patch.object(fitting, "MOST_TIMERS", 100),
    ):
        control.get("/credentials").raise_for_status()
        answer = control.post("/import", content=attempts(exported(control), 101), headers=HEADERS)
    assert 422 == answer.status_code
    assert "timers: there are more than 100" in answer.json()["message"]


@pytest.mark.promise("events")
def test_members_beside_the_records_of_events_take_what_they_count() -> None:
    """Empty lists were kept as objects, of 21 times their bytes: 250 MB of this file."""
    with Process("--scenario", "empty", *NOW) as server, server.control("filled") as control:
        control.get("/credentials").raise_for_status()
        found = lines(exported(control))
        home = found[1][1]["home"]
        event = {
            "type": "order.created",
            "at": found[1][1]["clock"]["now"],
            "merchant_id": home,
            "key": "order",
            "subject": home,
            "project_id": None,
            "resource": {},
            "hidden": None,
            "extras": {"names": [], "others": [["a", [[]] * 98_000]]},
        }
        for number in range(40):
            found.append(("event", event | {"id": f"evt_{number:026x}"}))
        before = memory_of(server)
        imported(control, sealed(found))
        assert memory_of(server) - before < 100 * MIB


@pytest.mark.night
def test_few_patterns_are_kept() -> None:
    """Each took 65 KB: the 4,096 that were kept 267 MB."""
    with (
        Process("--scenario", "empty", *NOW) as server,
        server.control() as control,
        server.api() as api,
    ):
        assert 422 == api.post("/v2/customers", json={"name": "Ana"}).status_code
        before = memory_of(server)
        for number in range(1_600):
            wanted = {
                "operationId": "createCustomer",
                "body": {"name": f"{number:04}" + "*a" * 1_000},
            }
            body = {"request": wanted, "times": {"exactly": 0}}
            answer = control.post("/requests/verify", json=body)
            assert 200 == answer.status_code, answer.text
        assert memory_of(server) - before < 60 * MIB


def test_nobody_has_to_ask_why_a_sandbox_was_not_made(tmp_path: Path) -> None:
    """Its name is taken while it waits. The log had a traceback."""
    path = Path(small_scenario(tmp_path))
    path.write_text(path.read_text().replace("scale: 0.15", "scale: 4"))
    with Process("--scenario", str(path), *NOW) as server, server.control() as control:

        def begin(name: str) -> None:
            body = {"name": name, "seed": len(name)}
            beside = control.post("/sandboxes", json=body, headers=ASYNC)
            assert 202 == beside.status_code, beside.text

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(begin, ("taken", "last")))
        created(control.post("/sandboxes", json={"name": "taken"}))
        while 202 == control.get("/sandboxes/last").status_code:
            time.sleep(0.1)
        assert 204 == control.delete("/sandboxes/taken").status_code
        begun = control.post("/sandboxes", json={"name": "taken"}, headers=ASYNC)
        assert 201 == begun.status_code, begun.text
        assert "never retrieved" not in server.stop()
