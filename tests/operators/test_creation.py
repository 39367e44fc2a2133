"""Creating a large sandbox: with `Prefer: respond-async` it is asked for until it is ready, and
others are served.
"""

import time
from collections.abc import Iterator
from itertools import count

import httpx2
import pytest
from click.testing import CliRunner

from stub_server.cli.command import main
from stub_server.operations.control import sandboxes
from stub_server.server.sandboxes import creating

from ..conftest import Serve
from ..support.live import NO_TLS, Live
from ..support.make import created
from ..support.refusal import refused

pytestmark = pytest.mark.check
ASYNC = {"Prefer": "wait=5, respond-async"}
seeds = count(7001)  # a sandbox like another one takes no time


@pytest.fixture(scope="module")
def server(serve: Serve) -> Live:
    return serve(scenario="empty", seed=89)


@pytest.fixture
def client(server: Live, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx2.Client]:
    """A client of a server that says where to ask at once, and not after a second."""
    monkeypatch.setattr(sandboxes, "SOON", 0.0)
    with httpx2.Client(base_url=server.url, timeout=60, verify=NO_TLS) as client:
        yield client


def test_a_sandbox_is_asked_for_until_it_is_ready(client: httpx2.Client) -> None:
    body = {"name": "Large", "scenario": "default", "seed": next(seeds)}
    answer = client.post("/_sandbox/sandboxes", json=body, headers=ASYNC)
    assert (202, "/_sandbox/sandboxes/large") == (answer.status_code, answer.headers["Location"])
    assert "large" == answer.json()["creation"]["name"]
    seen = []
    while answer.status_code == 202:
        assert int(answer.headers["Retry-After"]) >= 1
        seen.append(answer.json()["creation"]["progress"])
        if len(seen) == 2:  # others are served
            again = client.post("/_sandbox/sandboxes", json=body, headers=ASYNC)
            refused(again, 409, "duplicate_sandbox")
            assert 200 == client.get("/_sandbox/clock").status_code
            created(client.post("/_sandbox/snapshots", json={"name": "meanwhile"}))
        answer = client.get("/_sandbox/sandboxes/LARGE")
    assert 200 == answer.status_code, answer.text
    assert seen == sorted(seen)
    assert seen == [round(part, 3) for part in seen]
    assert len(seen) > 1
    sandbox = answer.json()["sandbox"]
    assert sandbox["records"] > 1000
    token = {"Authorization": f"Bearer {sandbox['credentials']['jwt']}"}
    assert client.get("/s/large/v2/customers", headers=token).json()["customers"]
    assert 204 == client.delete("/_sandbox/sandboxes/large").status_code
    refused(client.get("/_sandbox/sandboxes/large"), 404, "sandbox_not_found")


def overtaken(client: httpx2.Client, name: str) -> str:
    """A sandbox that was created while one of its name was: the first name for which it is in
    time.
    """
    for number in range(20):
        body = {"name": f"{name}-{number}", "scenario": "default", "seed": next(seeds)}
        while client.post("/_sandbox/sandboxes", json=body, headers=ASYNC).status_code == 409:
            time.sleep(0.05)  # until the one before has failed
        small = client.post("/_sandbox/sandboxes", json={"name": body["name"], "scenario": "empty"})
        if small.status_code == 201:
            return str(body["name"])
    raise AssertionError("none was in time")


def test_what_keeps_it_from_being_created_is_said_to_who_asks_once(client: httpx2.Client) -> None:
    name = overtaken(client, "taken")
    answer = client.get(f"/_sandbox/sandboxes/{name}")
    while answer.status_code == 202:
        time.sleep(0.05)
        answer = client.get(f"/_sandbox/sandboxes/{name}")
    message = refused(answer, 404, "sandbox_not_found")["message"]
    assert f"There is a sandbox {name} already." in message
    assert 200 == client.get(f"/_sandbox/sandboxes/{name}").status_code


def test_a_reason_that_nobody_asks_for_is_forgotten(
    client: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds all that had been created: twice as many are kept as may be under way."""
    monkeypatch.setattr(creating, "MOST_CREATIONS", 1)
    names = [overtaken(client, name) for name in ("first", "second", "third")]
    assert 200 == client.get(f"/_sandbox/sandboxes/{names[0]}").status_code


def test_the_verb_waits_for_it(client: httpx2.Client, server: Live) -> None:
    flags = ["--server", server.url, "--scenario", "default", "--seed", str(next(seeds))]
    said = CliRunner().invoke(main, ["sandboxes", "create", "slow", *flags])
    assert 0 == said.exit_code, said.output
    assert said.output.startswith("slow is created.\n  address   ")
