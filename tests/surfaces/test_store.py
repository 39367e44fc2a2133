"""--store DIR: what was answered is there after a restart, however the process ended;
what a start refuses.
"""

import os
import shutil
import sqlite3
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx2
import pytest

from stub_server.app import create_app
from stub_server.engine import kept
from stub_server.server.layers.routing import Application
from stub_server.server.sandboxes import entry
from stub_server.storage.database import StoreError
from stub_server.storage.sql import FORMAT, sum_of
from stub_server.storage.sqlite import DATABASE

from ..engine.inside import Inside
from ..engine.state import same
from ..engine.state import state as facts
from ..support.files import exported
from ..support.live import FROZEN, NO_TLS, small_scenario
from ..support.make import HELD, created, customer_body, order_body
from ..support.processes import Process
from ..support.receiver import receiving
from ..support.refusal import says

pytestmark = pytest.mark.check

NOW = ("--now", "2026-11-20T14:32:05.123Z")
LISTS = (
    "/v2/customers",
    "/v2/orders",
    "/v2/subscriptions",
    "/v2/webhooks",
    "/v2/webhooks/logs",
    "/api-keys",
)


def store(folder: Path, *flags: str) -> Process:
    """A server over a directory, which begins with a small world; its clock stands unless told."""
    begins = ("--scenario", small_scenario(folder), "--base-url", "http://127.0.0.1:4600")
    return Process("--store", str(folder / "store"), *begins, *flags)


def left(folder: Path) -> None:
    """What a server leaves in a directory that did nothing but begin."""
    create_app(replace(FROZEN, store=folder)).sandboxes.persistence.close()


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that nothing has been done in, to copy."""
    folder = tmp_path_factory.mktemp("begun")
    left(folder)
    return folder


def refusal(folder: Path) -> str:
    """Why a server does not begin with a directory."""
    with pytest.raises(StoreError) as refused:
        create_app(replace(FROZEN, store=folder))
    return str(refused.value)


def told(server: Process, sandbox: str = "default") -> dict[str, Any]:
    """What a server says of a sandbox."""
    with server.api(sandbox) as api, server.control(sandbox) as control:
        found: dict[str, Any] = {
            path: api.get(path, params={"limit": 100}).json() for path in LISTS
        }
        found["events"] = control.get("/events", params={"limit": 100}).json()
        found["clock"] = {
            k: v
            for k, v in control.get("/clock").json().items()
            if k in ("frozen", "pending_timers")
        }
        shown = control.get(f"/sandboxes/{sandbox}").json()["sandbox"]
        members = (
            "name",
            "scenario",
            "seed",
            "parent",
            "step",
            "records",
            "created_at",
            "expires_at",
        )
        found["sandbox"] = {name: shown[name] for name in members}
        found["keys"] = {
            name: shown["credentials"][name] for name in ("public_key", "private_key", "sample")
        }
        return found


def file_of(server: Process, sandbox: str) -> bytes:
    """A sandbox as a file."""
    with server.control(sandbox) as control:
        return exported(control)


def place(api: httpx2.Client, sample: dict[str, str], **headers: str) -> httpx2.Response:
    """A new order."""
    return api.post(
        "/v2/orders/pix", json=order_body(sample["projectId"], sample["planId"]), headers=headers
    )


@pytest.mark.promise("kill-loses-nothing")
def test_a_sandbox_that_is_asked_for_while_it_is_made_is_there_once(tmp_path: Path) -> None:
    """A second one, opened from the store beside it, would not have what was answered, and the
    writes of both would be lost.
    """
    with store(tmp_path) as server, server.control() as control, ThreadPoolExecutor(3) as pool:
        for name in [f"made{number}" for number in range(30)]:
            is_made = threading.Event()
            asking = [pool.submit(ask_for, f"{server.url}/s/{name}", is_made) for _ in range(3)]
            control.post("/sandboxes", json={"name": name, "scenario": "empty"})
            with server.api(name) as api:
                answers = []
                for _ in range(3):
                    answers.append(api.post("/v2/customers", json=customer_body()))
                    answers.append(api.get("/v2/customers"))
            is_made.set()
            for each in asking:
                each.result()
            for made, listed in zip(answers[::2], answers[1::2], strict=True):
                assert created(made)["customer"]["id"] in listed.text, name


def ask_for(url: str, ends: threading.Event) -> None:
    """Ask for the clock of a sandbox again and again."""
    with httpx2.Client(verify=NO_TLS) as client:
        while not ends.is_set():
            client.get(f"{url}/_sandbox/clock")


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_what_was_answered_is_there_after_a_restart(tmp_path: Path, how: str) -> None:
    """Records, ids to come, saved replies, keys, forks with their parents, times to live and the
    events feed.
    """
    with store(tmp_path, *NOW) as server:
        with server.api() as api, server.control() as control:
            sample = control.get("/credentials").json()["sample"]
            order = created(place(api, sample))
            assert 200 == control.post(f"/orders/{order['id']}/pay").status_code
            assert 200 == control.post("/clock/advance", json={"days": 40}).status_code
            order = created(place(api, sample, **{"Idempotency-Key": "once"}))
            key = created(api.post("/api-keys", json={"name": "k", "scopes": ["orders:read"]}))[
                "api_key"
            ]
            created(
                control.post("/sandboxes/default/fork", json={"name": "twin", "ttl_seconds": 3600})
            )
            created(control.post("/sandboxes", json={"name": "gone"}))
            assert 204 == control.delete("/sandboxes/gone").status_code
            created(place(api, sample))
            feed = control.get("/events", params={"wait": 0}).json()["next"]
        with server.api("mentioned") as other:
            created(other.post("/v2/customers", json=customer_body()))
        names = ("default", "twin", "mentioned")
        before = {name: told(server, name) for name in names}
        files = {name: file_of(server, name) for name in names}
        getattr(server, how)()
    with server, server.control() as control, server.api() as api:
        assert before == {name: told(server, name) for name in names}
        assert files == {name: file_of(server, name) for name in names}
        listed = control.get("/sandboxes").json()["sandboxes"]
        assert ["mentioned", "twin", "default"] == [sandbox["name"] for sandbox in listed]
        again = place(api, sample, **{"Idempotency-Key": "once"})
        assert ("true", order["id"]) == (again.headers["idempotent-replayed"], again.json()["id"])
        headers = {"Authorization": f"Bearer {key['private_key']}"}
        assert (
            200 == httpx2.get(f"{server.url}/v2/orders", headers=headers, verify=NO_TLS).status_code
        )
        created(api.post("/v2/customers", json=customer_body()))
        followed = control.get("/events", params={"after": feed}).json()
        assert (False, ["customer.created"]) == (
            followed["began_anew"],
            [e["type"] for e in followed["events"]],
        )


async def start(app: Application) -> None:
    """Write states beside the requests."""
    app.sandboxes.persistence.start()


def test_a_whole_state_is_written_now_and_then_and_its_steps_go(tmp_path: Path) -> None:
    """Of the steps that it holds none is left, so that the directory is bounded and
    starts are fast.
    """
    settings = replace(FROZEN, scenario="empty", history=100, store=tmp_path / "store")
    with patch.object(entry, "LEAST", 100_000):
        app = create_app(settings)
        inside = Inside(app)
        inside.run(start(app))
        own = app.server.ready_token(app.sandboxes.default)
        for _ in range(300):
            assert 201 == inside.ask("POST", "/v2/customers", customer_body(), own).status
        deadline = time.monotonic() + 30
        while not _is_tidy(tmp_path) and time.monotonic() < deadline:
            inside.ask("GET", "/_sandbox/health")
        inside.run(app.sandboxes.persistence.stop())
        expected = facts(app.sandboxes.default)
        inside.close()
    base, first, count = _left(tmp_path)
    assert base > 0
    assert (base + 1, 300 - base) == (first, count)
    app = create_app(settings)
    same(expected, facts(app.sandboxes.default))
    with closing(sqlite3.connect(tmp_path / "store" / DATABASE)) as database:
        assert [(1,)] == database.execute("select count(*) from states").fetchall()
    app.sandboxes.persistence.close()


def test_going_back_further_than_a_log_keeps_stores_the_state_and_no_step(tmp_path: Path) -> None:
    """A line of all that changes would hold every request. The sandbox goes on at once, and is
    opened as it was.
    """
    settings = replace(FROZEN, scenario="empty", store=tmp_path / "store")
    app = create_app(settings)
    inside = Inside(app)
    own = app.server.ready_token(app.sandboxes.default)
    inside.run(start(app))
    assert 201 == inside.ask("POST", "/_sandbox/snapshots", {"name": "none"}).status
    for _ in range(20):
        assert 201 == inside.ask("POST", "/v2/customers", customer_body(), own).status
    with patch.object(kept, "MOST_BYTES", 10_000):
        assert 200 == inside.ask("POST", "/_sandbox/snapshots/none/restore").status
        for _ in range(2):
            assert 201 == inside.ask("POST", "/v2/customers", customer_body(), own).status
    assert 204 == inside.ask("DELETE", "/_sandbox/snapshots/none").status
    expected = facts(app.sandboxes.default)
    inside.run(app.sandboxes.persistence.stop())
    inside.close()
    assert (21, 22, 2) == _left(tmp_path)
    app = create_app(settings)
    same(expected, facts(app.sandboxes.default))
    app.sandboxes.persistence.close()


def test_a_large_step_back_of_a_lost_sandbox_leaves_its_steps_in_the_store(tmp_path: Path) -> None:
    """Another server has it by then, and goes on with them."""
    app = create_app(replace(FROZEN, scenario="empty", store=tmp_path / "store"))
    inside = Inside(app)
    own = app.server.ready_token(app.sandboxes.default)
    inside.run(start(app))
    inside.ask("POST", "/_sandbox/snapshots", {"name": "none"})
    for _ in range(20):
        inside.ask("POST", "/v2/customers", customer_body(), own)
    before = _steps(tmp_path)
    with closing(sqlite3.connect(tmp_path / "store" / DATABASE)) as database, database:
        database.execute("update sandboxes set holder = holder + 7")
    with patch.object(kept, "MOST_BYTES", 10_000):
        assert 503 == inside.ask("POST", "/_sandbox/snapshots/none/restore").status
    assert before == _steps(tmp_path)
    inside.run(app.sandboxes.persistence.stop())
    inside.close()


def _steps(folder: Path) -> list[tuple[int, int]]:
    """The steps that the store has, and after which step each state is."""
    with closing(sqlite3.connect(folder / "store" / DATABASE)) as database:
        steps = database.execute("select place, length(line) from steps").fetchall()
        return steps + database.execute("select id, step from states").fetchall()


def _is_tidy(folder: Path) -> bool:
    """Whether a state was written, and nothing is left that it makes superfluous."""
    base, first, _ = _left(folder)
    with closing(sqlite3.connect(folder / "store" / DATABASE)) as database:
        is_one = [(1,)] == database.execute("select count(*) from states").fetchall()
        return base > 0 and first == base + 1 and is_one


def _left(folder: Path) -> tuple[int, int, int]:
    """The step of the whole state, the oldest step that is still there, and how many there are."""
    with closing(sqlite3.connect(folder / "store" / DATABASE)) as database:
        ((base,),) = database.execute("select step from states").fetchall()
        ((first, count),) = database.execute(
            "select min(place) & 0xffffffff, count(*) from steps"
        ).fetchall()
        return base, first or 0, count


def test_deliveries_go_on_after_a_restart_and_what_was_held_stays_held(tmp_path: Path) -> None:
    with receiving() as receiver:
        receiver.status = 500
        with store(tmp_path, *NOW) as server:
            with server.api() as api, server.control() as control:
                hook = {"url": receiver.url, "events": ["customer.created"]}
                created(api.post("/v2/webhooks", json=hook))
                created(api.post("/v2/customers", json=customer_body()))
                control.post("/webhooks/drain")
                created(control.post("/sandboxes/default/fork", json={"name": "silent"}))
                created(control.post("/sandboxes/default/fork", json={"name": "resumed"}))
            with (
                server.api("silent") as api,
                server.api("resumed") as other,
                server.control("resumed") as control,
            ):
                created(api.post("/v2/customers", json=customer_body()))
                created(other.post("/v2/customers", json=customer_body()))
                receiver.status = 200
                receiver.requests.clear()
                assert 1 == control.post("/webhooks/drain", json=HELD).json()["released"]
                control.post("/webhooks/drain")
                assert 1 == len(receiver.requests)
            server.kill()
        with server, server.control("silent") as silent, server.control("resumed") as resumed:
            with server.control() as control:
                control.post("/clock/advance", json={"seconds": 10})
                assert control.post("/webhooks/drain").json()["complete"]
                assert 2 == len(receiver.requests)  # the parent's retry
            assert 1 == silent.get("/health").json()["deliveries"]["held"]
            with server.api("resumed") as api:
                created(api.post("/v2/customers", json=customer_body()))
            assert resumed.post("/webhooks/drain").json()["complete"]
            assert 0 == resumed.get("/health").json()["deliveries"]["held"]
            assert len(receiver.requests) >= 3


def test_a_directory_in_use_is_refused_and_free_again_after_a_kill(tmp_path: Path) -> None:
    with store(tmp_path, *NOW) as server:
        assert says(store(tmp_path).refused(), "another server")
        server.kill()
    left(tmp_path / "store")


def changed(folder: Path, *statements: str) -> None:
    """Change a database whose server is off."""
    with sqlite3.connect(folder / DATABASE) as database:
        for statement in statements:
            database.execute(statement)
    database.close()


@pytest.mark.parametrize("number", [FORMAT - 1, FORMAT + 1])
def test_a_directory_of_another_format_is_refused(tmp_path: Path, number: int) -> None:
    left(tmp_path)
    for name, value in (("format", str(number)), ("server", "9.0.0")):
        summed = f"value = '{value}', sum = {sum_of(name, value)}"
        changed(tmp_path, f"update settings set {summed} where name = '{name}'")  # noqa: S608 - ours
    before = (tmp_path / DATABASE).read_bytes()
    said = refusal(tmp_path)
    assert says(said, "version 9.0.0 wrote it", f"in format {number}", "Start that version")
    assert "\n" not in said
    assert before == (tmp_path / DATABASE).read_bytes()


def test_what_is_no_directory_of_ours_is_refused(tmp_path: Path) -> None:
    """Nothing in it is changed."""
    (tmp_path / "store").write_text("a file")
    assert "--store" in store(tmp_path).refused()
    (tmp_path / "store").unlink()
    (tmp_path / "store").mkdir()
    letter = "no database at all, but long enough to be looked at" * 40
    (tmp_path / "store" / DATABASE).write_text(letter)
    assert "cannot be used" in refusal(tmp_path / "store")
    assert letter == (tmp_path / "store" / DATABASE).read_text()


DAMAGES = [
    "update parts set body = substr(body, 1, 100) || x'00' || substr(body, 102)",
    "update parts set body = substr(body, 1, 100)",
    "delete from parts",
    "delete from states",
    "delete from sandboxes",
    "delete from settings",
    "delete from settings where name = 'secret'",
    "delete from settings where name = 'format'",
    "update sandboxes set about = replace(about, 'null', '\"me\"')",
    "update sandboxes set about = cast(x'ff' as text)",
    "drop table states",
    (
        "pragma writable_schema=on; update sqlite_master set sql = replace(sql, 'checksum', '`') where"
        " name = 'states'"
    ),
    (
        "pragma writable_schema=on; update sqlite_master set name = cast(x'ff' as text) where name"
        " like '%tials_1'"
    ),
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.matrix
def test_what_is_damaged_stops_the_start(begun: Path, tmp_path: Path, damage: str) -> None:
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    changed(tmp_path, *damage.split("; "))
    before = (tmp_path / DATABASE).read_bytes()
    said = refusal(tmp_path)
    assert says(said, "--store", "cannot be")
    assert "from a backup" in said
    assert "\n" not in said
    assert before == (tmp_path / DATABASE).read_bytes()


def test_a_damaged_directory_is_told_in_a_line_and_nothing_of_it_is_lost(tmp_path: Path) -> None:
    with store(tmp_path, *NOW) as server, server.api() as api:
        for _ in range(3):
            created(api.post("/v2/customers", json=customer_body()))
        total = api.get("/v2/customers").json()["pagination"]["total"]
        server.kill()
    sandbox = "(select id from sandboxes where name = 'default')"
    lengthen = "update steps set line = line || x'20'"
    changed(tmp_path / "store", f"{lengthen} where place = {sandbox} << 32 | 2")
    for _ in range(2):
        said = server.refused()
        assert says(said, "step 2", "default", "from a backup")
        assert "Traceback" not in said
        assert 1 == said.count("\n")
    shorten = "update steps set line = cast(rtrim(line) as blob)"
    changed(tmp_path / "store", f"{shorten} where place = {sandbox} << 32 | 2")
    with server, server.api() as api:
        assert total == api.get("/v2/customers").json()["pagination"]["total"]


@pytest.mark.promise("store-of-its-owner")
def test_a_directory_is_its_owners_alone(tmp_path: Path) -> None:
    with store(tmp_path, *NOW) as server:
        for path in (tmp_path / "store", *(tmp_path / "store").rglob("*")):
            assert not stat.S_IMODE(os.stat(path).st_mode) & 0o077, path
        server.kill()


@pytest.mark.promise("start-warns-of-open-store")
def test_a_directory_that_others_may_read_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir(mode=0o755)
    (tmp_path / "store").chmod(0o755)
    with store(tmp_path, *NOW) as server:
        assert "readable by other users" in server.stop()
    (tmp_path / "store").chmod(0o700)
    with store(tmp_path, *NOW) as server:
        assert "readable by other users" not in server.stop()


def test_every_answer_waits_for_the_disk_where_that_is_asked_for(tmp_path: Path) -> None:
    with store(tmp_path, *NOW, "--sync", "always") as server:
        with server.api() as api:
            created(api.post("/v2/customers", json=customer_body()))
        before = told(server)
        server.kill()
    with server:
        assert before == told(server)


def test_a_part_that_no_state_has_is_deleted_once_no_writer_may_need_it(tmp_path: Path) -> None:
    with store(tmp_path):
        pass
    old = 1
    new = time.time_ns()
    with closing(sqlite3.connect(tmp_path / "store" / DATABASE, isolation_level=None)) as database:
        found = database.execute("select state from parts").fetchall()
        for state in (old, new):
            database.execute("insert into parts values (?, 0, x'')", (state,))
        with store(tmp_path):
            deadline = time.monotonic() + 30
            while (old,) in (rows := database.execute("select state from parts").fetchall()):
                assert time.monotonic() < deadline
                time.sleep(0.05)
    assert [*found, (new,)] == rows


def test_nobody_waits_for_a_commit_that_waits(tmp_path: Path) -> None:
    """While another connection writes a large state, or one of a sandbox's steps are deleted, a
    commit waited in the turn of everybody.
    """
    with store(tmp_path) as server, server.api() as api, server.control("other") as other:
        other.get("/credentials").raise_for_status()
        with (
            closing(sqlite3.connect(tmp_path / "store" / DATABASE)) as writer,
            ThreadPoolExecutor(1) as pool,
        ):
            writer.execute("begin immediate")
            making = pool.submit(api.post, "/v2/customers", json=customer_body())
            time.sleep(0.3)
            assert 200 == other.get("/clock", timeout=1).status_code
            assert not making.done()
            writer.rollback()
            created(making.result())
