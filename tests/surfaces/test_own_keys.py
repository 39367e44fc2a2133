"""API keys differ by sandbox, and a key finds its world: where the path and a header do not choose,
it does.
"""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from stub_server.data.keys import MAIN_ID, pair_of

from ..support.live import NO_TLS, Live
from ..support.make import done
from ..support.refusal import refused
from ..support.wire import Door
from .conftest import door_to

WORLDS = ("keys-one", "keys-two", "keys-copy")


def credentials(live: Live, name: str) -> dict[str, Any]:
    """What a sandbox hands out."""
    url = f"{live.url}/s/{name}/_sandbox/credentials"
    return done(httpx2.get(url, timeout=30, verify=NO_TLS))


@pytest.fixture
def worlds(live: Live) -> Iterator[tuple[Door, Door]]:
    """Two sandboxes of one seed."""
    one, two = (door_to(live, name) for name in WORLDS[:2])
    yield one, two
    for name in WORLDS:
        live.app.sandboxes.forget(name)


def bare(door: Door, token: str) -> Door:
    """The same server without a prefix."""
    return Door(door.port, "", token)


def customers(door: Door) -> list[str]:
    """The ids on the first page."""
    answer = door.ask("GET", "/v2/customers")
    assert answer.status == 200, answer.body
    return [customer["id"] for customer in answer.json()["customers"]]


def test_seeded_keys_differ_by_sandbox_and_records_do_not(
    live: Live, worlds: tuple[Door, Door]
) -> None:
    """Every seeded key, not the main one alone; those of `default` are what the seed
    alone decides.
    """
    default, one, two = (credentials(live, name) for name in ("default", *WORLDS[:2]))
    assert 6 == len(
        {body[half] for body in (default, one, two) for half in ("public_key", "private_key")}
    )
    assert default["sample"] == one["sample"] == two["sample"]
    listed = [
        {
            key["public_key"]: key["name"]
            for key in door.ask("GET", "/api-keys?limit=100").json()["api_keys"]
        }
        for door in (Door(live.port, "", default["jwt"]), *worlds)
    ]
    assert len(set().union(*listed)) == 3 * len(listed[0]) > 3
    assert len({tuple(sorted(names.values())) for names in listed}) == 1
    secret = live.settings.signing_secret(b"")
    assert (default["public_key"], default["private_key"]) == pair_of(
        secret, live.settings.seed, MAIN_ID
    )


@pytest.mark.promise("credential-of-one-sandbox")
def test_a_seeded_key_under_another_world_is_refused_and_told_whose_it_is(
    live: Live, worlds: tuple[Door, Door]
) -> None:
    """By prefix and by header; either half, and one of `default` too."""
    two = worlds[1]
    for key, owner in (
        (credentials(live, WORLDS[0])["private_key"], WORLDS[0]),
        (credentials(live, "default")["private_key"], "default"),
    ):
        by_header = bare(two, key).ask("GET", "/v2/customers", headers=[("X-Sandbox", WORLDS[1])])
        for answer in (two.ask("GET", "/v2/customers", token=key), by_header):
            message = refused(answer, 401, "invalid_token")["message"]
            assert f"one of the sandbox {owner}," in message
            assert f"/s/{WORLDS[1]}/_sandbox/credentials" in message
    public = two.ask("GET", "/api-keys/info", token=credentials(live, "default")["public_key"])
    assert "one of the sandbox default," in refused(public, 401, "invalid_token")["message"]


def test_a_key_that_somebody_made_finds_its_world(worlds: tuple[Door, Door]) -> None:
    """Until it is deleted; a reset takes it away with everything else. Where a fork has it too, it
    still finds the parent.
    """
    one = worlds[0]
    body = {"name": "Minha", "scopes": ["customers:read"]}
    keys = [one.send("POST", "/api-keys", body).json()["api_key"] for _ in range(2)]
    forked = one.send("POST", f"/_sandbox/sandboxes/{WORLDS[0]}/fork", {"name": WORLDS[2]})
    assert forked.status == 201, forked.body
    copy = Door(one.port, f"/s/{WORLDS[2]}", keys[0]["private_key"])
    assert customers(copy) == customers(one)
    found = one.send(
        "POST", "/v2/customers", {"name": "Só", "email": "s@example.com", "document": "P4SSKEY2"}
    )
    for key in keys:
        assert found.json()["customer"]["id"] == customers(bare(one, key["private_key"]))[0]
    assert one.ask("DELETE", f"/api-keys/{keys[0]['id']}").status == 200
    refused(bare(one, keys[0]["private_key"]).ask("GET", "/v2/customers"), 401, "invalid_token")
    assert one.ask("POST", "/_sandbox/reset").status == 200
    refused(bare(one, keys[1]["private_key"]).ask("GET", "/v2/customers"), 401, "invalid_token")
