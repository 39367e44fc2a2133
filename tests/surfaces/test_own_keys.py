"""API keys differ by sandbox, and a key finds its world: where the path and a header do not choose, it does."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from stub_server.data.keys import MAIN_ID, derive_keys, pair_of
from stub_server.sandboxes import entry
from stub_server.sandboxes.entry import keys_of

from ..conftest import Serve
from ..support.live import NO_TLS, Live
from ..support.refusal import refused
from ..support.wire import Door
from .conftest import door_to

WORLDS = ("keys-one", "keys-two")


def credentials(live: Live, name: str) -> dict[str, Any]:
    """What a sandbox hands out."""
    body: dict[str, Any] = httpx2.get(f"{live.url}/s/{name}/_sandbox/credentials", timeout=30, verify=NO_TLS).json()
    return body


@pytest.fixture
def worlds(live: Live) -> Iterator[tuple[Door, Door]]:
    """Two sandboxes of one seed."""
    one, two = (door_to(live, name) for name in WORLDS)
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


def test_seeded_keys_differ_by_sandbox_and_records_do_not(live: Live, worlds: tuple[Door, Door]) -> None:
    """Every seeded key, not the main one alone; those of `default` are what the seed alone decides."""
    default, one, two = (credentials(live, name) for name in ("default", *WORLDS))
    assert 6 == len({body[half] for body in (default, one, two) for half in ("public_key", "private_key")})
    assert default["sample"] == one["sample"] == two["sample"]
    listed = [
        {key["public_key"]: key["name"] for key in door.ask("GET", "/api-keys?limit=100").json()["api_keys"]}
        for door in (Door(live.port, "", default["jwt"]), *worlds)
    ]
    assert len(set().union(*listed)) == 3 * len(listed[0]) > 3
    assert len({tuple(sorted(names.values())) for names in listed}) == 1
    secret = live.settings.signing_secret(b"")
    assert (default["public_key"], default["private_key"]) == pair_of(secret, live.settings.seed, MAIN_ID)


def test_the_same_name_and_seed_give_the_same_keys(live: Live, worlds: tuple[Door, Door]) -> None:
    before = credentials(live, WORLDS[0])
    assert worlds[0].ask("POST", "/_sandbox/reset").status == 200
    after = credentials(live, WORLDS[0])
    assert before["private_key"] == after["private_key"]
    assert worlds[0].ask("GET", "/v2/customers", token=after["private_key"]).status == 200


@pytest.mark.parametrize("half", ["private_key", "public_key"])
def test_a_seeded_key_finds_its_world(live: Live, worlds: tuple[Door, Door], half: str) -> None:
    """Either half, as the scheme is spelled in any case."""
    one = worlds[0]
    made = one.send("POST", "/v2/customers", {"name": "Só aqui", "email": "so@example.com", "document": "P4SSKEY1"})
    assert made.status == 201
    key = credentials(live, WORLDS[0])[half]
    info = bare(one, key).ask("GET", "/api-keys/info")
    assert info.status == 200
    merchant = bare(one, key).ask("GET", f"/api-keys/merchant/{credentials(live, WORLDS[0])['public_key']}")
    assert merchant.status == 200
    if half == "private_key":
        assert made.json()["customer"]["id"] == customers(bare(one, key))[0]
        lower = one.ask("GET", "/v2/customers", token=None, headers=[("Authorization", f"bearer {key}")])
        assert lower.status == 200


def test_a_key_of_default_stays_in_default(live: Live) -> None:
    body = credentials(live, "default")
    answer = Door(live.port, "", body["private_key"]).ask("GET", f"/v2/orders/{body['sample']['orderId']}")
    assert answer.status == 200


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


def test_a_made_key_under_another_world_is_refused_as_one_that_never_was(worlds: tuple[Door, Door]) -> None:
    """Whose it is would be told to whoever found it."""
    one, two = worlds
    made = one.send("POST", "/api-keys", {"name": "Minha", "scopes": ["customers:read"]}).json()["api_key"]
    for half, nobody, path in (
        ("private_key", "sk_sandbox_nobody", "/v2/customers"),
        ("public_key", "pk_no", "/api-keys/info"),
    ):
        answers = [two.ask("GET", path, token=token) for token in (made[half], nobody)]
        assert 1 == len({refused(answer, 401, "invalid_token")["message"] for answer in answers})


def test_a_key_that_somebody_made_finds_its_world(worlds: tuple[Door, Door]) -> None:
    """Until it is deleted; a reset takes it away with everything else."""
    one = worlds[0]
    body = {"name": "Minha", "scopes": ["customers:read"]}
    keys = [one.send("POST", "/api-keys", body).json()["api_key"] for _ in range(2)]
    found = one.send("POST", "/v2/customers", {"name": "Só", "email": "s@example.com", "document": "P4SSKEY2"})
    for key in keys:
        assert found.json()["customer"]["id"] == customers(bare(one, key["private_key"]))[0]
    assert one.ask("DELETE", f"/api-keys/{keys[0]['id']}").status == 200
    refused(bare(one, keys[0]["private_key"]).ask("GET", "/v2/customers"), 401, "invalid_token")
    assert one.ask("POST", "/_sandbox/reset").status == 200
    refused(bare(one, keys[1]["private_key"]).ask("GET", "/v2/customers"), 401, "invalid_token")


def test_a_key_of_a_world_that_is_gone_is_unknown(live: Live) -> None:
    """It makes no world: what it was of nobody remembers."""
    key = credentials(live, "keys-gone")["private_key"]
    live.app.sandboxes.forget("keys-gone")
    refused(Door(live.port, "", key).ask("GET", "/v2/customers"), 401, "invalid_token")
    assert live.app.sandboxes.find("keys-gone") is None


def test_a_copy_has_seeded_keys_of_its_own_and_leaves_made_ones_to_their_world(live: Live) -> None:
    """What a fork will do: the parent's key finds the parent, and serves in the copy under its name."""
    parent = door_to(live, "keys-parent")
    made = parent.send("POST", "/api-keys", {"name": "Minha", "scopes": ["orders:read"]}).json()["api_key"]
    sandboxes = live.app.sandboxes
    world = sandboxes.find("keys-parent")
    assert world is not None
    before, ring = dict(world.credentials), len(sandboxes.keyring)
    twin = world.fork("keys-copy")
    derive_keys(twin, live.settings.signing_secret(b""))
    assert world.credentials == before
    assert set(before.values()).isdisjoint(twin.credentials.values())
    tables = [store.api_keys for store in (world.store, twin.store)]
    mine, copied = (set(table.unique["public_key"]) for table in tables)
    assert mine & copied == {made["public_key"]}
    assert len(mine) == len(copied)
    assert twin.log.number == world.log.number
    sandboxes.keyring.add("keys-copy", keys_of(twin))
    assert sandboxes.keyring.get(made["public_key"]) == "keys-parent"
    assert sandboxes.keyring.get(twin.credentials["public_key"]) == "keys-copy"
    sandboxes.keyring.forget("keys-copy")
    assert len(sandboxes.keyring) == ring
    sandboxes.forget("keys-parent")


def test_a_key_that_two_worlds_name_is_the_first_ones_and_forgotten_with_it() -> None:
    ring = entry.Keyring()
    ring.add("one", ["a", "b"])
    ring.add("two", ["b", "c", "d"])
    assert ["one", "one", "two", "two"] == [ring.get(key) for key in "abcd"]
    ring.forget("two")
    assert ["one", "one", None, None] == [ring.get(key) for key in "abcd"]
    ring.forget("one")
    ring.forget("nobody")
    assert len(ring) == 0


@pytest.mark.check
def test_lenient_takes_a_key_of_another_world_as_the_seeded_merchant(serve: Serve) -> None:
    server = serve(auth="lenient")
    door = Door(server.port, "/s/surfaces", credentials(server, "default")["private_key"])
    assert door.ask("GET", "/v2/customers?limit=1").status == 200
