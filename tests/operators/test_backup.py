"""`stub-server backup`: a copy of a store that is being written, and what it is worth
when it is restored.
"""

import shutil
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stub_server.cli.command import main
from stub_server.storage.sqlite import DATABASE

from ..support.make import created, customer_body
from ..support.processes import Process

pytestmark = [pytest.mark.check, pytest.mark.turn]


def backup(folder: Path, file: Path) -> Result:
    """What the command says and how it exits."""
    return CliRunner().invoke(main, ["backup", str(folder), str(file)])


@contextmanager
def writing(server: Process, made: list[str]) -> Iterator[None]:
    """A client that creates customers until the block ends; `made` are those that were answered."""
    done = threading.Event()

    def post() -> None:
        with server.api("team") as api:
            while not done.is_set():
                made.append(
                    created(api.post("/v2/customers", json=customer_body()))["customer"]["id"]
                )

    thread = threading.Thread(target=post)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.mark.promise("store-of-its-owner")
def test_a_backup_under_writes_has_all_that_was_answered_before_it(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    made = list[str]()
    with Process("--store", str(folder), "--scenario", "empty") as server:
        with server.control("team") as control:
            token = control.get("/credentials").json()["jwt"]
        with writing(server, made):
            for number in range(3):
                before = len(made)
                deadline = time.monotonic() + 60
                while len(made) < before + 20:
                    assert time.monotonic() < deadline
                    time.sleep(0.01)
                answered = set(made)
                said = backup(folder, tmp_path / f"{number}.backup")
                assert 0 == said.exit_code, said.output
        assert len(made) > len(answered)
    assert 0o600 == stat.S_IMODE((tmp_path / "2.backup").stat().st_mode)
    restored = tmp_path / "restored"
    restored.mkdir(mode=0o700)
    shutil.copy(tmp_path / "2.backup", restored / DATABASE)
    with (
        Process("--store", str(restored), "--scenario", "empty") as server,
        server.api("team") as api,
    ):
        api.headers["Authorization"] = f"Bearer {token}"
        for ident in answered:
            assert 200 == api.get(f"/v2/customers/{ident}").status_code
        created(api.post("/v2/customers", json=customer_body()))


def test_a_backup_replaces_no_file_and_copies_no_damage(tmp_path: Path) -> None:
    file = tmp_path / "file"
    said = backup(tmp_path, file)
    assert (2, False) == (said.exit_code, file.exists())
    assert f"there is no {DATABASE} here" in said.stderr
    with Process("--store", str(tmp_path / "store"), "--scenario", "empty") as server:
        server.stop()
    said = backup(tmp_path / "store", tmp_path / "missing" / "file")
    assert (2, True) == (said.exit_code, "There is no directory" in said.stderr)
    file.write_text("mine")
    said = backup(tmp_path / "store", file)
    assert (2, "mine") == (said.exit_code, file.read_text())
    assert "exists already" in said.stderr
    with closing(sqlite3.connect(tmp_path / "store" / DATABASE, isolation_level=None)) as database:
        database.execute("pragma foreign_keys=off")
        database.execute("delete from sandboxes")
    said = backup(tmp_path / "store", tmp_path / "other")
    assert (2, False) == (said.exit_code, (tmp_path / "other").exists())
    assert "a row that other rows refer to" in said.stderr
