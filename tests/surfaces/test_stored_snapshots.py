"""--store DIR and snapshots: one that was answered for is there after a restart, one that was
dropped is not.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from stub_server.storage.sqlite import DATABASE

from ..journeys.past import everything
from ..support.files import exported
from ..support.make import Json, created, customer_body
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
    """Those of every sandbox, also after the history that led to them is forgotten, and
    in a second restart.
    """
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
