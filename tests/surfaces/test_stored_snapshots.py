"""--store DIR and snapshots: one that was answered for is there after a restart, one that was dropped is not."""

import shutil
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from stub_server.app import create_app
from stub_server.files import lines
from stub_server.persistence.sql import StoreError
from stub_server.persistence.sqlite import DATABASE

from ..journeys.hooks import clients
from ..journeys.past import everything
from ..support.files import exported, imported
from ..support.live import FROZEN, running
from ..support.make import Json, created, customer_body
from ..support.overlays import overlay, shortened
from ..support.processes import Process

pytestmark = pytest.mark.check

NOW = ("--now", "2026-11-20T14:32:05.123Z")


def store(folder: Path, *flags: str) -> Process:
    """A server over a directory."""
    return Process("--store", str(folder / "store"), "--base-url", "http://127.0.0.1:4600", *flags)


def states(folder: Path) -> int:
    """How many states there are."""
    with closing(sqlite3.connect(folder / "store" / DATABASE)) as database:
        ((count,),) = database.execute("select count(*) from states").fetchall()
    return int(count)


def listed(control: httpx2.Client) -> list[Json]:
    """The snapshots of a sandbox, newest first."""
    found: list[Json] = control.get("/snapshots").json()["snapshots"]
    return found


def snapshot(control: httpx2.Client, name: str = "clean", **more: object) -> None:
    """A new one."""
    created(control.post("/snapshots", json={"name": name, **more}))


@pytest.mark.parametrize("how", ["kill", pytest.param("stop", marks=pytest.mark.night)])
def test_snapshots_are_listed_and_restored_after_a_restart(tmp_path: Path, how: str) -> None:
    """Those of every sandbox, also after the history that led to them is forgotten, and in a second restart."""
    with store(tmp_path, *NOW, "--history", "2") as server:
        with server.api() as api, server.control() as control, server.control("other") as other:
            created(api.post("/v2/customers", json=customer_body()))
            snapshot(control, description="One customer")
            was = everything(api, control)
            for _ in range(4):
                created(api.post("/v2/customers", json=customer_body()))
            snapshot(control, "later")
            snapshot(control, "again")
            snapshot(control, "again")
            snapshot(other, "empty")
            assert 204 == control.delete("/snapshots/later").status_code
            assert 200 == control.post("/clock/advance", json={"days": 40}).status_code
            before, file = (listed(control), listed(other)), exported(control)
        getattr(server, how)()
    for _ in range(2):
        with server:
            with server.api() as api, server.control() as control, server.control("other") as other:
                assert ["again", "clean"] == [found["name"] for found in listed(control)]
                assert before == (listed(control), listed(other))
                assert file == exported(control)
            server.kill()
    with server, server.api() as api, server.control() as control:
        assert 200 == control.post("/snapshots/clean/restore").status_code
        assert was == everything(api, control)
        assert 200 == control.get("/invariants").status_code
        assert 5 == states(tmp_path)  # two sandboxes, three snapshots


def test_a_state_whose_last_chunk_is_full_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here all chunks are, with one line each."""
    monkeypatch.setattr(lines, "MOST", 1)
    for _ in range(2):
        with running(replace(FROZEN, store=tmp_path / "store")) as live, clients(live) as (api, control):
            created(api.post("/v2/customers", json=customer_body()))
            snapshot(control)
            assert 200 == control.post("/snapshots/clean/restore").status_code
            assert 204 == control.delete("/snapshots/clean").status_code


@pytest.mark.night
def test_a_kill_right_after_the_answer_loses_no_snapshot(tmp_path: Path) -> None:
    """Each time another one was answered for, and of the earlier ones none is lost either."""
    server = store(tmp_path, *NOW, "--scenario", "empty")
    for number in range(4):
        with server, server.api() as api, server.control() as control:
            created(api.post("/v2/customers", json=customer_body()))
            snapshot(control, f"s{number}")
            server.kill()
    with server, server.control() as control:
        told = [(found["name"], found["step"], found["records"]) for found in reversed(listed(control))]
        first = told[0][2]
        assert [(f"s{number}", number + 1, first + number) for number in range(4)] == told
        for name, _, records in told:
            assert records == control.post(f"/snapshots/{name}/restore").json()["sandbox"]["records"]


@pytest.mark.night
def test_a_running_clock_shows_the_same_instant_in_a_snapshot_after_a_restart(tmp_path: Path) -> None:
    with store(tmp_path) as server:
        with server.control() as control:
            snapshot(control)
            before = listed(control)
        server.kill()
    with server, server.control() as control:
        assert before == listed(control)
        assert 200 == control.post("/snapshots/clean/restore").status_code


@pytest.mark.night
def test_reset_import_and_deletion_drop_the_stored_snapshots(tmp_path: Path) -> None:
    """And their states are off the disk with the next start at the latest."""
    with store(tmp_path, *NOW) as server:
        with server.control() as control, server.control("carried") as carried, server.control("gone") as gone:
            snapshot(gone)
            assert 204 == control.delete("/sandboxes/gone").status_code
            snapshot(control)
            file = exported(control)
            snapshot(carried, "of-before")
            imported(carried, file)
            assert 200 == control.post("/reset", json={}).status_code
        server.kill()
    with server, server.control() as control, server.control("carried") as carried:
        assert [] == listed(control)
        assert ["clean"] == [found["name"] for found in listed(carried)]
        assert 200 == carried.post("/snapshots/clean/restore").status_code
        assert 3 == states(tmp_path)  # two sandboxes, one snapshot


def test_a_server_begins_with_the_snapshots_of_a_file_and_keeps_them(tmp_path: Path) -> None:
    with running(FROZEN) as live, clients(live) as (_, control):
        snapshot(control)
        before = listed(control)
        (tmp_path / "bug.sandbox").write_bytes(exported(control))
    with store(tmp_path, "--restore", str(tmp_path / "bug.sandbox")) as server:
        with server.control() as control:
            assert before == listed(control)
        server.kill()
    with store(tmp_path) as server, server.control() as control:
        assert before == listed(control)


def test_a_damaged_snapshot_stops_the_start(tmp_path: Path) -> None:
    settings = replace(FROZEN, store=tmp_path / "store")
    with running(settings) as live, clients(live) as (api, control):
        created(api.post("/v2/customers", json=customer_body()))  # chunks of its own
        snapshot(control)
    ours = "(select id from states where name = 'clean')"
    used = f"select digest from state_chunks where state {{}} {ours}"  # noqa: S608 - our own tables
    mine = f"digest in ({used.format('=')}) and digest not in ({used.format('!=')})"
    for damage in (
        f"update chunks set body = substr(body, 1, 100) where {mine}",  # noqa: S608 - our own tables
        f"delete from chunks where {mine}",  # noqa: S608 - our own tables
        f"delete from state_chunks where state = {ours}",  # noqa: S608 - our own tables
        f"delete from states where id = {ours}",  # noqa: S608 - our own tables
        "update states set name = 'other' where name = 'clean'",
    ):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(tmp_path / "store", tmp_path / "copy")
        with sqlite3.connect(tmp_path / "copy" / DATABASE) as database:
            database.execute(damage)
        database.close()
        with pytest.raises(StoreError, match="cannot be"):
            create_app(replace(settings, store=tmp_path / "copy"))


def test_a_snapshot_that_does_not_fit_the_served_contract_stops_the_start_with_a_list(tmp_path: Path) -> None:
    """Also where the sandbox itself fits, which has gone back to before the record."""
    file = tmp_path / "file.sandbox"
    with running(replace(FROZEN, scenario="empty")) as live, clients(live) as (api, control):
        snapshot(control, "before")
        created(api.post("/v2/customers", json=customer_body()))
        snapshot(control)
        assert 200 == control.post("/snapshots/before/restore").status_code
        file.write_bytes(exported(control))
    strict = overlay(tmp_path, shortened("Customer", 12))
    said = store(tmp_path, "--restore", str(file), "--overlay", str(strict)).refused()
    assert "\n  snapshot clean: customers /name: " in said


@pytest.mark.night
def test_a_snapshot_that_cannot_be_written_leaves_the_one_of_its_name(tmp_path: Path) -> None:
    """It is 503, and neither the store nor the sandbox has changed; the same for a deletion and a reset."""
    with store(tmp_path, *NOW, "--scenario", "empty") as server:
        with server.control() as control:
            snapshot(control)
            before = listed(control)
            with sqlite3.connect(tmp_path / "store" / DATABASE) as database:
                for change in ("insert on states", "delete on states", "update of newest on sandboxes"):
                    begin = f"create trigger no_{change[:6]} before {change} begin select"
                    database.execute(f"{begin} raise(abort, 'no'); end")
            database.close()
            for answer in (
                control.post("/snapshots", json={"name": "clean", "description": "another"}),
                control.post("/snapshots", json={"name": "more"}),
                control.delete("/snapshots/clean"),
                control.post("/reset", json={}),
            ):
                assert 503 == answer.status_code, answer.text
            assert before == listed(control)
            with sqlite3.connect(tmp_path / "store" / DATABASE) as database:
                for change in ("insert", "delete", "update"):
                    database.execute(f"drop trigger no_{change}")
            database.close()
            time.sleep(1)  # what is not needed any more goes from the disk meanwhile
        server.kill()
    with server, server.control() as control:
        assert before == listed(control)
        assert 200 == control.post("/snapshots/clean/restore").status_code
        snapshot(control)
