"""Worlds by request: listed, made, forked and dropped over HTTP; forks that do not
see each other.
"""

import gc
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from ..conftest import Serve
from ..support.live import NO_TLS, Live
from ..support.make import Json, created, customer_body
from ..support.refusal import refused, says

Make = Callable[..., Json]
NOW = "2027-03-01T12:00:00.000Z"
SPRING = {"name": "Spring", "scenario": "past_due", "seed": 7, "now": NOW, "ttl_seconds": 60}


@pytest.fixture(scope="module")
def server(serve: Serve) -> Live:
    """A server whose worlds are counted here."""
    return serve(seed=11)


@pytest.fixture
def worlds(server: Live) -> Iterator[httpx2.Client]:
    """The control surface of a server on which every world but the default one goes
    after the test.
    """
    with httpx2.Client(base_url=f"{server.url}/_sandbox", timeout=30, verify=NO_TLS) as client:
        yield client
    for name in [world.name for world in server.app.sandboxes.sandboxes()]:
        server.forget(name)


@pytest.fixture
def make(worlds: httpx2.Client) -> Make:
    """`make(name="a")`: a new world."""

    def made(**body: Any) -> Json:
        return dict(created(worlds.post("/sandboxes", json=body))["sandbox"])

    return made


def api(world: Json) -> httpx2.Client:
    """The API in a world, with its own key."""
    headers = {"Authorization": f"Bearer {world['credentials']['private_key']}"}
    return httpx2.Client(base_url=world["base_url"], headers=headers, timeout=30, verify=NO_TLS)


@pytest.mark.check
def test_a_world_is_made_as_asked(worlds: httpx2.Client, make: Make, server: Live) -> None:
    """Scenario, seed, instant and time to live; its address and credentials work at once."""
    response = worlds.post("/sandboxes", json=SPRING)
    world = created(response)["sandbox"]
    assert ("spring", "past_due", 7, None, 0, NOW, True) == tuple(
        world[name] for name in ("name", "scenario", "seed", "parent", "step", "now", "frozen")
    )
    assert f"{server.url}/s/spring" == world["base_url"] == world["credentials"]["base_url"]
    assert "/_sandbox/sandboxes/spring" == response.headers["location"]
    assert world["created_at"] < world["expires_at"]
    with api(world) as client:
        customers = client.get("/v2/customers").json()["pagination"]["total"]
    assert 0 < customers < world["records"]
    shown = worlds.get("/sandboxes/SPRING").json()["sandbox"]
    assert world == shown | {
        "last_used_at": world["last_used_at"],
        "credentials": world["credentials"],
    }
    plain = make()
    assert ("default", 11, None, None) == tuple(
        plain[n] for n in ("scenario", "seed", "parent", "expires_at")
    )
    assert plain["name"].startswith("sandbox-")


def test_worlds_are_listed_newest_first_without_credentials(
    worlds: httpx2.Client, make: Make
) -> None:
    for name in ("a-one", "a-two", "b-one"):
        make(name=name)
    page = worlds.get("/sandboxes", params={"limit": 2}).json()
    assert ["b-one", "a-two"] == [world["name"] for world in page["sandboxes"]]
    assert (4, 2, True) == tuple(
        page["pagination"][name] for name in ("total", "total_pages", "has_next")
    )
    assert all("credentials" not in world for world in page["sandboxes"])
    found = worlds.get("/sandboxes", params={"name": "*-one"}).json()
    assert ["b-one", "a-one"] == [world["name"] for world in found["sandboxes"]]
    for pattern in ("*-ONE", "?-one"):
        found = worlds.get("/sandboxes", params={"name": pattern}).json()
        assert ["b-one", "a-one"] == [world["name"] for world in found["sandboxes"]], pattern
    assert [] == worlds.get("/sandboxes", params={"name": "[ab]-one"}).json()["sandboxes"]
    assert ["a-one", "default"] == [
        w["name"]
        for w in worlds.get("/sandboxes", params={"limit": 2, "page": 2}).json()["sandboxes"]
    ]


@pytest.mark.check
def test_a_fork_has_the_past_and_a_future_of_its_own(worlds: httpx2.Client, make: Make) -> None:
    parent = make(name="parent", now=NOW)
    with api(parent) as first:
        one = created(first.post("/v2/customers", json=customer_body()))["customer"]
        response = worlds.post("/sandboxes/parent/fork", json={"name": "child"})
        child = created(response)["sandbox"]
        assert ("parent", 1, NOW, True) == tuple(
            child[name] for name in ("parent", "step", "now", "frozen")
        )
        assert worlds.get("/sandboxes/parent").json()["sandbox"]["records"] == child["records"]
        assert parent["credentials"]["private_key"] != child["credentials"]["private_key"]
        with api(child) as second:
            assert one == second.get(f"/v2/customers/{one['id']}").json()["customer"]
            body = customer_body()
            here, there = (
                created(c.post("/v2/customers", json=body))["customer"] for c in (first, second)
            )
            assert here["id"] == there["id"]  # both sides did the same
            second.put(f"/v2/customers/{one['id']}", json={"name": "Outra"})
            assert one == first.get(f"/v2/customers/{one['id']}").json()["customer"]
            assert "Outra" == second.get(f"/v2/customers/{one['id']}").json()["customer"]["name"]
            refused(second.get("/v2/customers", headers=dict(first.headers)), 401, "invalid_token")
    made = created(worlds.post("/sandboxes/child/fork"))["sandbox"]
    assert ("child", 3) == (made["parent"], made["step"])
    assert made["name"].startswith("fork-")
    assert made["name"].removeprefix("fork-").isalpha()
    assert 13 == len(made["name"])


def test_a_deleted_world_is_gone_with_its_keys(worlds: httpx2.Client, make: Make) -> None:
    world = make(name="gone")
    with api(world) as client:
        created(client.post("/v2/customers", json=customer_body()))
        response = worlds.delete("/sandboxes/GONE")
        assert (204, b"") == (response.status_code, response.content)
        refused(worlds.get("/sandboxes/gone"), 404, "sandbox_not_found")
        refused(worlds.delete("/sandboxes/gone"), 404, "sandbox_not_found")
        refused(worlds.post("/sandboxes/gone/fork"), 404, "sandbox_not_found")
        root = str(client.base_url).partition("/s/")[0]
        refused(client.get(f"{root}/v2/customers"), 401, "invalid_token")
    answer = worlds.delete("/sandboxes/default")
    assert "POST /s/default/_sandbox/reset" in refused(answer, 409, "sandbox_protected")["message"]
    assert [("sandboxName", "path")] == [
        (wrong["field"], wrong["in"]) for wrong in answer.json()["details"]
    ]


def test_what_cannot_be_made_says_why(worlds: httpx2.Client, make: Make) -> None:
    make(name="taken")
    for path in ("", "/taken/fork"):
        refused(worlds.post(f"/sandboxes{path}", json={"name": "TAKEN"}), 409, "duplicate_sandbox")
        always = refused(
            worlds.post(f"/sandboxes{path}", json={"name": "default"}), 409, "duplicate_sandbox"
        )
        assert "DELETE" not in always["message"]
    for scenario in ("nowhere", "../../etc/passwd", "./default.yaml"):
        answer = worlds.post("/sandboxes", json={"scenario": scenario})
        body = refused(answer, 404, "scenario_not_found")
        assert says(body["message"], "busy", "default", "empty", "extremes", "past_due")
        assert [("scenario", "body")] == [
            (wrong["field"], wrong["in"]) for wrong in answer.json()["details"]
        ]
    refused(worlds.post("/sandboxes", json={"now": "9999-01-01T00:00:00Z"}), 409, "clock_too_far")
    refused(worlds.get("/sandboxes/-x"), 404, "sandbox_not_found")
    assert ["taken", "default"] == [
        world["name"] for world in worlds.get("/sandboxes").json()["sandboxes"]
    ]


def test_a_world_with_a_time_to_live_is_dropped(
    worlds: httpx2.Client, make: Make, server: Live
) -> None:
    """By the machine's clock; its name is free again at once, and so is its memory."""
    make(name="brief", ttl_seconds=1)
    make(name="lasting", ttl_seconds=60)
    assert 200 == worlds.get("/sandboxes/brief").status_code
    reference = weakref.ref(server.app.sandboxes.entry("brief").sandbox)
    time.sleep(1)
    assert ["lasting", "default"] == [
        world["name"] for world in worlds.get("/sandboxes").json()["sandboxes"]
    ]
    assert is_freed(reference)
    make(name="brief")
    worlds.delete("/sandboxes/brief")
    make(name="brief", ttl_seconds=1)
    time.sleep(1)
    refused(worlds.get("/sandboxes/brief"), 404, "sandbox_not_found")


def test_a_persona_has_its_life_where_every_order_is_paid(make: Make) -> None:
    """The settings of a sandbox are for what comes."""
    world = make(name="all-paid", settings={"autopay": 1})
    with httpx2.Client(base_url=world["base_url"], timeout=30, verify=NO_TLS) as client:
        lived = created(client.post("/_sandbox/personas", json={"persona": "past_due_br"}))
    assert ["past_due"] == [each["status"] for each in lived["subscriptions"]]


def test_a_deleted_sandbox_whose_clock_runs_is_freed(
    worlds: httpx2.Client, make: Make, server: Live
) -> None:
    """The alarm for what is due next held it for up to an hour."""
    make(name="running")
    worlds.patch(
        f"{server.url}/s/running/_sandbox/clock", json={"frozen": False}
    ).raise_for_status()
    reference = weakref.ref(server.app.sandboxes.entry("running").sandbox)
    assert 204 == worlds.delete("/sandboxes/running").status_code
    assert is_freed(reference)


def is_freed(reference: weakref.ref[Any]) -> bool:
    """Whether what was referred to goes soon: an answer that is on its way may still hold it."""
    for _ in range(100):
        gc.collect()
        if reference() is None:
            return True
        time.sleep(0.1)
    return False
