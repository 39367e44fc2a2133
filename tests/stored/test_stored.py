"""Files and directories of every format that was released are opened, with all that they hold."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from ..support.files import imported
from ..support.live import NOW
from ..support.make import Json
from ..support.processes import Process
from ..support.recordings import Replayed
from .__main__ import KEY, LAST, answers, done

pytestmark = pytest.mark.check

FORMATS = sorted(Path(__file__).parent.glob("[0-9]*"))
Clients = tuple[httpx2.Client, httpx2.Client]


@pytest.fixture(params=FORMATS, ids=lambda folder: folder.name)
def folder(request: pytest.FixtureRequest) -> Path:
    """What one format wrote."""
    found: Path = request.param
    return found


def server_of(*flags: str, **more: Any) -> Process:
    """A server with these flags."""
    return Process("--scenario", "empty", "--now", NOW, *flags, **more)


@contextmanager
def opened(server: Process) -> Iterator[Clients]:
    """The default sandbox of a server: its API and its controls."""
    with server, server.api() as api, server.control() as control:
        yield api, control


def copied(folder: Path, to: Path) -> str:
    """A copy of the directory, which a server may change."""
    return str(shutil.copytree(folder / "store", to / "store"))


def missing(was: Any, now: Any, where: str = "") -> list[str]:
    """What is not as it was; members that are new do not count."""
    if isinstance(was, dict) and isinstance(now, dict):
        both = was.keys() & now.keys()
        lost = [f"{where}/{name}" for name in was.keys() - now.keys()]
        return lost + [text for name in both for text in missing(was[name], now[name], f"{where}/{name}")]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return [text for n, pair in enumerate(zip(was, now, strict=True)) for text in missing(*pair, f"{where}/{n}")]
    return [] if was == now else [f"{where}: {was!r} is {now!r}"]


def check_whole(folder: Path, clients: Clients, *, replies: bool = True) -> None:
    """Everything is there, and goes on."""
    api, control = clients
    was: Json = orjson.loads((folder / "answers.json").read_bytes())
    assert [] == missing(was, answers(api, control))
    assert 200 == control.get("/invariants").status_code
    again = api.post("/v2/customers", json=LAST, headers={"Idempotency-Key": KEY})
    assert (201 if replies else 409) == again.status_code
    done(control.post("/snapshots/pending/restore"))
    assert ["pending"] == [order["status"] for order in done(api.get("/v2/orders"))["orders"]]
    done(control.post("/rewind", json={"to_step": 2}))
    assert [] == done(api.get("/v2/customers"))["customers"]
    assert 200 == control.get("/invariants").status_code


@pytest.mark.parametrize("name", ["export", "no-secrets"])
def test_an_export(folder: Path, name: str) -> None:
    with opened(server_of("--restore", str(folder / name))) as clients:
        check_whole(folder, clients, replies=name == "export")


def test_a_recording(folder: Path, control: httpx2.Client, api: httpx2.Client) -> None:
    """It is replayed, and imported as the state after its requests."""
    replayed = Replayed(folder / "recording")
    assert (0, None) == (replayed.code, replayed.told["diff"]), replayed.error
    was: Json = orjson.loads((folder / "answers.json").read_bytes())
    imported(control, (folder / "recording").read_bytes())
    now = answers(api, control)
    assert [] == missing(was["now"], now["now"])
    assert [] == missing(was["steps"], now["steps"])


def test_a_store(folder: Path, tmp_path: Path) -> None:
    with opened(server_of("--store", copied(folder, tmp_path))) as clients:
        check_whole(folder, clients)
    with Process("--store", str(tmp_path / "store")) as server, server.api("other") as api:
        assert ["Davi Reis"] == [found["name"] for found in done(api.get("/v2/customers"))["customers"]]
        assert [] == done(api.get("/v2/orders"))["orders"]
