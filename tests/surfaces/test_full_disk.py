"""--store that cannot be written, as on a full disk: changes are refused and not done, reads go on,
it recovers.
"""

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import Any

import httpx2
import pytest

from stub_server.storage import sql, sqlite
from stub_server.storage.database import KeptState

from ..conftest import Serve
from ..journeys.hooks import clients
from ..support.disk import Disk, recovered
from ..support.files import HEADERS, exported
from ..support.make import HELD, created, customer_body
from ..support.processes import Process

NOW = ("--now", "2026-11-20T14:32:05.123Z")


def refused(answer: httpx2.Response) -> None:
    """A change is refused because the store cannot be written."""
    told = answer.request.url, answer.text
    assert (503, "store_unavailable") == (answer.status_code, answer.json().get("code")), told


def left(folder: Path) -> tuple[int, int]:
    """How many sandboxes and states a store has, once those that were deleted are gone."""
    until, counts = monotonic() + 5, (0, 0)
    with closing(sqlite3.connect(folder / sqlite.DATABASE)) as database:
        while monotonic() < until:
            (counts,) = database.execute(
                "select (select count(*) from sandboxes), (select count(*) from states)"
            )
            if counts[0] == 2:
                break
            sleep(0.1)
    return counts


@pytest.mark.check
@pytest.mark.turn
def test_changes_are_refused_and_not_done_and_reads_go_on(tmp_path: Path) -> None:
    with (
        Process("--store", str(tmp_path / "store"), *NOW) as server,
        server.api() as api,
        server.control() as control,
    ):
        disk = Disk(server)
        first = created(api.post("/v2/customers", json=customer_body()))["customer"]
        created(control.post("/sandboxes", json={"name": "there"}))
        created(control.post("/snapshots", json={"name": "kept"}))
        file = exported(control)
        before, body = exported(control), customer_body()
        disk.fill()
        changes: tuple[Callable[[], httpx2.Response], ...] = (
            lambda: api.post("/v2/customers", json=body),
            lambda: api.post("/v2/customers", json=body, headers={"Idempotency-Key": "once"}),
            lambda: api.put(f"/v2/customers/{first['id']}", json={"name": "Outra"}),
            lambda: control.post("/clock/advance", json={"days": 3}),
            lambda: control.post("/rewind", json={"to_step": 0}),
            lambda: control.post("/reset"),
            lambda: control.post("/snapshots", json={"name": "s"}),
            lambda: control.post("/sandboxes", json={"name": "other"}),
            lambda: control.post("/sandboxes/default/fork", json={"name": "other"}),
            lambda: control.delete("/sandboxes/there"),
            lambda: control.delete("/snapshots/kept"),
            lambda: control.post("/snapshots/kept/restore"),
            lambda: control.post("/import", content=file, headers=HEADERS),
            lambda: control.get(f"{server.url}/s/mentioned/_sandbox/credentials"),
            lambda: control.post("/webhooks/drain", json=HELD),
        )
        for change in changes:
            refused(change())
        for change in changes:  # each as the first that fails
            disk.free()
            disk.fill()
            refused(change())
            assert 200 == api.get(f"/v2/customers/{first['id']}").status_code
            assert 200 == api.get("/v2/orders").status_code
        assert 200 == control.get("/health").status_code
        refused(control.get("/ready"))
        assert 404 == api.get("/v2/customers/00000000-0000-4000-8000-000000000000").status_code
        disk.free()
        assert before == exported(control)
        assert 0 == control.get("/health").json()["deliveries"]["due"]
        assert ["there", "default"] == [
            told["name"] for told in control.get("/sandboxes").json()["sandboxes"]
        ]
        assert ["kept"] == [told["name"] for told in control.get("/snapshots").json()["snapshots"]]
        assert (2, 3) == left(tmp_path / "store")
        made = created(api.post("/v2/customers", json=body, headers={"Idempotency-Key": "once"}))[
            "customer"
        ]
        assert 200 == control.post("/clock/advance", json={"days": 40}).status_code
        created(control.post("/snapshots", json={"name": "s"}))
        after = exported(control)
        server.kill()
        server.start()
        with server.control() as later, server.api() as again:
            assert after == exported(later)
            assert 200 == again.get(f"/v2/customers/{made['id']}").status_code
            assert 200 == later.get("/invariants").status_code
        said = server.stop()
    assert "Traceback" not in said, said


@pytest.mark.promise("unwritten-is-not-done")
@pytest.mark.night
@pytest.mark.check
@pytest.mark.turn
def test_what_was_refused_is_not_done_and_what_was_answered_is(tmp_path: Path) -> None:
    """Many clients at once, while the disk fills and is freed."""
    done: list[str] = []
    undone: list[str] = []
    is_over = Event()

    def shop(api: httpx2.Client) -> None:
        while not is_over.is_set():
            body = customer_body()
            answer = api.post("/v2/customers", json=body)
            if answer.status_code != 201:
                refused(answer)
            (done if answer.status_code == 201 else undone).append(str(body["document"]))
            seen = api.get("/v2/orders", params={"limit": 1})
            if seen.status_code != 200:  # it began before a change was undone, and may have seen it
                refused(seen)

    flags = ("--store", str(tmp_path / "store"), "--scenario", "empty", *NOW)
    with Process(*flags) as server, server.api() as api, ThreadPoolExecutor(4) as pool:
        disk, running = Disk(server), [pool.submit(shop, api) for _ in range(4)]
        for _ in range(8):
            sleep(0.2)
            disk.fill()
            sleep(0.1)
            disk.free()
        is_over.set()
        for shopping in running:
            shopping.result()
        server.kill()
        server.start()
        with server.control() as control, server.api() as later:
            first = later.get("/v2/customers", params={"limit": 1}).json()["pagination"]
            assert len(done) == first["total"]
            for document in done[-50:]:
                assert 1 == len(
                    later.get("/v2/customers", params={"document": document}).json()["customers"]
                )
            for document in undone[-50:]:
                assert 0 == len(
                    later.get("/v2/customers", params={"document": document}).json()["customers"]
                )
            assert 200 == control.get("/invariants").status_code
    assert (True, True) == (bool(done), bool(undone))


def test_a_change_for_which_the_store_is_locked_is_not_done(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has its database for longer than a write waits."""
    monkeypatch.setattr(sqlite, "BUSY", 0.5)
    body = customer_body()
    with (
        clients(serve(scenario="empty", store=tmp_path / "store")) as (api, control),
        closing(
            sqlite3.connect(tmp_path / "store" / sqlite.DATABASE, isolation_level=None)
        ) as other,
    ):
        other.execute("begin immediate")
        refused(api.post("/v2/customers", json=body))
        assert [] == api.get("/v2/customers").json()["customers"]
        other.execute("rollback")
        recovered(control)
        created(api.post("/v2/customers", json=body))
        assert 1 == api.get("/v2/customers").json()["pagination"]["total"]


def test_a_store_is_written_again_while_long_work_on_it_goes_on(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as writing a large snapshot: who waits for that, waits alone."""
    monkeypatch.setattr(sqlite, "BUSY", 0.5)
    writing, may_end, write_state = Event(), Event(), sql.write_state

    def slowly(*given: Any) -> KeptState:
        writing.set()
        assert may_end.wait(60)
        return write_state(*given)

    with (
        clients(serve(scenario="empty", store=tmp_path / "store")) as (api, control),
        closing(
            sqlite3.connect(tmp_path / "store" / sqlite.DATABASE, isolation_level=None)
        ) as other,
        ThreadPoolExecutor(1) as beside,
    ):
        monkeypatch.setattr(sql, "write_state", slowly)
        waiting = beside.submit(control.post, "/snapshots", json={"name": "large"}, timeout=60)
        try:
            assert writing.wait(60)
            other.execute("begin immediate")
            refused(api.post("/v2/customers", json=customer_body()))
            other.execute("rollback")
            recovered(control)
            created(api.post("/v2/customers", json=customer_body()))
            assert not waiting.done()
        finally:
            may_end.set()
        refused(waiting.result())  # its sandbox was opened anew meanwhile
