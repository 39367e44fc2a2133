"""--store DIR of the format before is taken over, once: its sandboxes go on, and its files stay in `before`."""

import sqlite3
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..support.before import PRIVATE_KEY, unpacked
from ..support.live import NO_TLS
from ..support.make import created, customer_body
from ..support.processes import Process
from ..support.refusal import says

pytestmark = pytest.mark.check


def store(folder: Path, *flags: str) -> Process:
    """A server over a directory."""
    return Process("--store", str(folder), "--scenario", "empty", "--now", "2026-11-20T14:32:05.123Z", *flags)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a directory that say something: looking at a database leaves an empty log."""
    files = {str(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()}
    found = {name: file.read_bytes() for name, file in files.items() if name != "worlds-shm"}
    return {name: data for name, data in found.items() if data}


def customers(server: Process, sandbox: str) -> int:
    """How many there are."""
    with server.api(sandbox) as api:
        return int(api.get("/v2/customers").json()["pagination"]["total"])


def damaged(folder: Path, *statements: str) -> None:
    """Change the database of before."""
    with sqlite3.connect(folder / "worlds") as database:
        for statement in statements:
            database.execute(statement)
    database.close()


def sandboxes(server: Process) -> dict[str, Any]:
    """What a server says of its sandboxes, by their names."""
    with server.control() as control:
        return {told["name"]: told for told in control.get("/sandboxes").json()["sandboxes"]}


def test_sandboxes_go_on_and_the_files_of_before_stay(tmp_path: Path) -> None:
    folder = unpacked(tmp_path)
    before = contents(folder)
    with store(folder) as server:
        found = sandboxes(server)
        assert {"default": None, "twin": "default", "other": None} == {n: told["parent"] for n, told in found.items()}
        assert {"default": 6, "twin": 7, "other": 0} == {n: told["step"] for n, told in found.items()}
        assert [4, 5, 0] == [customers(server, name) for name in ("default", "twin", "other")]
        own = {"Authorization": f"Bearer {PRIVATE_KEY}"}
        assert 200 == httpx2.get(f"{server.url}/v2/customers", headers=own, verify=NO_TLS).status_code
        with server.control() as control, server.control("twin") as twin, server.api("other") as other:
            assert "Three customers" == control.get("/snapshots").json()["snapshots"][0]["description"]
            assert 200 == control.post("/snapshots/kept/restore").status_code
            assert 3 == customers(server, "default")
            assert 200 == control.post("/rewind", json={"to_step": 5}).status_code  # what the rewind of before undid
            assert 5 == customers(server, "default")
            assert 200 == twin.post("/rewind", json={"to_step": 6}).status_code
            created(other.post("/v2/customers", json=customer_body()))
        server.kill()
    assert before == contents(folder / "before")
    with server:
        assert [5, 4, 1] == [customers(server, name) for name in ("default", "twin", "other")]
        assert "before" not in server.stop()


def test_what_is_damaged_is_told_and_nothing_is_changed(tmp_path: Path) -> None:
    """What is whole can be kept: up to the step before the damage, and all of the other sandboxes."""
    folder = unpacked(tmp_path)
    damaged(folder, "update steps_2 set line = line || ' ' where number = 7")
    (folder / "states" / "4").unlink()
    before = contents(folder)
    said = store(folder).refused()
    assert says(said, "is damaged", "--salvage")
    assert 1 == said.count("\n")
    assert before == contents(folder)
    with store(folder, "--salvage") as server:
        assert {"default", "twin"} == set(sandboxes(server))
        assert [4, 4] == [customers(server, name) for name in ("default", "twin")]
    assert before == contents(folder / "before")


@pytest.mark.parametrize("version", [3, 9])
def test_other_formats_are_refused(tmp_path: Path, version: int) -> None:
    folder = unpacked(tmp_path)
    damaged(folder, f"pragma user_version = {version}")
    said = store(folder).refused()
    assert says(said, str(folder), f"its format is {version}")
    assert 1 == said.count("\n")
