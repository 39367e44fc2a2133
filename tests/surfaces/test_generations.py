"""Credentials of a sandbox: whom they let in on a public and a plain server, and when they end."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stub_server.cli import banner
from stub_server.core import guesses
from stub_server.data.filling import MERCHANT_ID
from stub_server.data.keys import MAIN_ID, pair_of
from stub_server.settings import Settings

from ..support import forge
from ..support.console import Console
from ..support.live import FROZEN, NO_TLS, Live, running
from ..support.make import Json, created, make_order
from ..support.processes import Process

ADMIN = "a-long-admin-key"
ADMIN_HEADERS = {"X-Sandbox-Admin-Key": ADMIN}
GUARDED = replace(FROZEN, admin_key=ADMIN)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Live]:
    """A server on loopback with an admin key."""
    with running(GUARDED) as server:
        yield server


@pytest.fixture
def plain() -> Iterator[Live]:
    with running(FROZEN) as server:
        yield server


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test is refused for what another one guessed."""
    monkeypatch.setattr(guesses, "MOST", 1_000)


class Side:
    """Requests to one sandbox of a server, and what it knows of it."""

    def __init__(self, url: str, name: str, headers: Mapping[str, str] = ADMIN_HEADERS) -> None:
        self.url, self.name, self.headers = f"{url}/s/{name}", name, dict(headers)

    def api(self, credential: str, path: str = "/v2/customers?limit=1") -> int:
        """The status that a credential gets."""
        bearer = {"Authorization": f"Bearer {credential}"}
        return httpx2.get(self.url + path, headers=bearer, verify=NO_TLS, timeout=30).status_code

    def control(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, **more: Any
    ) -> httpx2.Response:
        sent = self.headers if headers is None else dict(headers)
        return httpx2.request(
            method, f"{self.url}/_sandbox{path}", headers=sent, verify=NO_TLS, timeout=30, **more
        )

    def credentials(self) -> Json:
        answer = self.control("GET", "/credentials")
        assert 200 == answer.status_code, answer.text
        found: Json = answer.json()
        return found

    def opens(self, control_key: str) -> bool:
        return (
            self.control("GET", "/clock", {"X-Sandbox-Control-Key": control_key}).status_code == 200
        )

    def order(self) -> Json:
        bearer = {"Authorization": f"Bearer {self.credentials()['jwt']}"}
        with httpx2.Client(base_url=self.url, headers=bearer, verify=NO_TLS, timeout=30) as api:
            return make_order(api)

    def pay_url(self, order: Json) -> str:
        return str(self.control("GET", f"/orders/{order['id']}").json()["pay_url"])

    def rotate(self, headers: Mapping[str, str] | None = None, **body: Any) -> Json:
        answer = self.control("POST", f"/sandboxes/{self.name}/rotate", headers, json=body)
        assert 200 == answer.status_code, answer.text
        found: Json = answer.json()
        return found


def side(server: Live, name: str) -> Side:
    """A new sandbox of a server."""
    body = {"name": name}
    created(
        httpx2.post(
            f"{server.url}/_sandbox/sandboxes", json=body, headers=ADMIN_HEADERS, verify=NO_TLS
        )
    )
    return Side(server.url, name)


def page(address: str) -> int:
    return httpx2.get(address, verify=NO_TLS, timeout=30).status_code


# -- public and plain


@pytest.mark.promise("tokens-keys-cannot-made-seed")
@pytest.mark.parametrize(
    "because",
    [
        {"admin_key": ADMIN},
        {"allow_hosts": ("shop.example:8080",)},
        {"base_url": "https://shop.example"},
        {"host": "0.0.0.0"},  # noqa: S104 - the test's server listens on loopback all the same
    ],
)
def test_credentials_of_the_seed_open_no_public_server(because: Json) -> None:
    with running(replace(FROZEN, **because)) as server:
        door = Side(server.url, "default")
        secret = Settings().signing_secret(b"")
        assert 401 == door.api(forge.signed(Settings(), sandbox="default", merchant_id=MERCHANT_ID))
        assert 401 == door.api(pair_of(secret, 42, MAIN_ID)[1])
        assert (
            404 == httpx2.get(f"{server.url}/s/mentioned/v2/customers", verify=NO_TLS).status_code
        )
        assert "seed" not in httpx2.get(f"{server.url}/_sandbox/health", verify=NO_TLS).json()
        assert "public, because of --" in told_at_start(server)


def told_at_start(server: Live) -> str:
    with redirect_stdout(StringIO()) as out:
        banner.show(server.app, server.settings)
    return " ".join(out.getvalue().split())


# -- deleted and rotated


@contextmanager
def ended(door: Side, order: Json) -> Iterator[None]:
    """What a sandbox gave before is worth nothing afterwards, and what it gives then is."""
    before, address = door.credentials(), door.pay_url(order)
    made = api_key(door, before["jwt"])
    assert [200, 200, 200] == [door.api(before[name]) for name in ("jwt", "private_key")] + [
        door.api(made)
    ]
    assert door.opens(before["control_key"])
    assert 200 == page(address)
    yield
    after = door.credentials()
    assert [401, 401] == [door.api(before[name]) for name in ("jwt", "private_key")]
    assert 401 == door.api(before["public_key"], "/api-keys/info")
    assert not door.opens(before["control_key"])
    assert 404 == page(address)
    assert [200, 200] == [door.api(after[name]) for name in ("jwt", "private_key")]
    assert 200 == door.api(after["public_key"], "/api-keys/info")
    assert door.opens(after["control_key"])


def api_key(door: Side, token: str, name: str = "Minha") -> str:
    """The private half of a key that a user makes."""
    bearer = {"Authorization": f"Bearer {token}"}
    body = {"name": name, "scopes": ["customers:read"]}
    answer = httpx2.post(f"{door.url}/api-keys", json=body, headers=bearer, verify=NO_TLS)
    return str(created(answer)["api_key"]["private_key"])


@pytest.mark.promise("credentials-deleted-sandbox-not-open")
def test_the_next_sandbox_of_a_name_knows_no_credential_of_the_last(guarded: Live) -> None:
    """Not even a key that its users make in the same way."""
    door = side(guarded, "remade")
    with ended(door, door.order()):
        old = api_key(door, door.credentials()["jwt"])
        assert 204 == door.control("DELETE", "/sandboxes/remade").status_code
        side(guarded, "remade")
        for _ in range(2):
            assert old != api_key(door, door.credentials()["jwt"])
        assert 401 == door.api(old)


@pytest.mark.promise("rotation-ends-tokens-seeded-keys")
def test_a_rotation_ends_what_was_given_at_once(guarded: Live) -> None:
    door = side(guarded, "rotated")
    order = door.order()
    with ended(door, order):
        told = door.rotate()
        now, given = door.credentials(), told["sandbox"]["credentials"]
        assert now | {"jwt": given["jwt"]} == given  # a token says in which second it was given
    assert 200 == page(door.pay_url(order))
    assert (1, False, ["Minha"]) == (
        told["keys_total"],
        told["keys_deleted"],
        [k["api_key"]["name"] for k in told["keys"]],
    )
    assert 200 == door.control("GET", "/invariants").status_code
    steps = door.control("GET", "/steps", params={"table": "api_keys"}).json()["steps"]
    assert "rotateSandbox" == steps[0]["cause"]["operation"]


def test_a_control_key_rotates_its_own_sandbox_alone(guarded: Live) -> None:
    door, other = side(guarded, "own-rotation"), side(guarded, "not-mine")
    key = {"X-Sandbox-Control-Key": door.credentials()["control_key"]}
    for name in ("not-mine", "default", "no-such-one"):
        for url in (door.url, f"{guarded.url}/s/{name}", guarded.url):
            path = f"{url}/_sandbox/sandboxes/{name}/rotate"
            refused = httpx2.post(path, headers=key, verify=NO_TLS)
            assert (403, "admin_key_required") == (
                refused.status_code,
                refused.json()["code"],
            ), path
    assert 200 == other.api(other.credentials()["jwt"])
    direct = httpx2.post(
        f"{guarded.url}/_sandbox/sandboxes/own-rotation/rotate", headers=key, verify=NO_TLS
    )
    assert 200 == direct.status_code, direct.text
    assert 403 == door.control("POST", "/sandboxes/own-rotation/rotate", key).status_code


@pytest.mark.promise("nothing-goes-back-time-brings")
def test_nothing_that_goes_back_brings_a_generation_back(guarded: Live) -> None:
    """A reset, a rewind, a snapshot, a file and an earlier state all know the newest
    credentials alone.
    """
    door = side(guarded, "back")
    order = door.order()
    door.control("POST", "/snapshots", json={"name": "before"})
    step = door.credentials() and door.control("GET", "/sandboxes/back").json()["sandbox"]["step"]
    file = door.control("GET", "/export", params={"history": True}).content
    with ended(door, order):
        newest = door.rotate()["sandbox"]["credentials"]
        media = {"Content-Type": "application/vnd.stub.sandbox+gzip", **ADMIN_HEADERS}
        for method, path, more in (
            ("POST", "/rewind", {"json": {"to_step": step}}),
            ("POST", "/snapshots/before/restore", {}),
            ("POST", "/import", {"content": file, "headers": media}),
            ("POST", "/rewind", {"json": {"to_step": 0}}),
            ("POST", "/reset", {}),
        ):
            answer = door.control(method, path, **more)
            assert 200 == answer.status_code, (path, answer.text)
            assert [200, 200] == [door.api(newest[name]) for name in ("jwt", "private_key")], path
            assert door.opens(newest["control_key"]), path
            assert newest["public_key"] == door.credentials()["public_key"], path
            assert 200 == door.control("GET", "/invariants").status_code, path
        door.order()


def test_a_rotation_survives_a_restart(tmp_path: Path) -> None:
    """So does the generation of a sandbox that was never rotated."""
    flags = ("--admin-key", ADMIN, "--store", str(tmp_path / "store"), "--scenario", "empty")
    with Process(*flags) as server:
        doors = [side(server, name) for name in ("kept", "rotated")]  # type: ignore[arg-type]
        doors[1].control("POST", "/snapshots", json={"name": "before"})
        before = [door.credentials() for door in doors]
        rotated = doors[1].rotate()["sandbox"]["credentials"]
        server.stop()
    with Process(*flags) as server:
        kept, door = (Side(server.url, name) for name in ("kept", "rotated"))
        assert [200, 200] == [kept.api(before[0][name]) for name in ("jwt", "private_key")]
        for _ in range(2):
            assert [401, 401] == [door.api(before[1][name]) for name in ("jwt", "private_key")]
            assert [200, 200] == [door.api(rotated[name]) for name in ("jwt", "private_key")]
            assert [False, True] == [
                door.opens(each["control_key"]) for each in (before[1], rotated)
            ]
            assert 200 == door.control("POST", "/snapshots/before/restore").status_code


# -- pay links


@pytest.mark.promise("only-whole-address-pay-page")
def test_a_pay_page_of_a_public_server_needs_its_key(guarded: Live) -> None:
    """An id that somebody may know from the seed, or from another sandbox, opens and
    pays nothing.
    """
    door, other = side(guarded, "shop"), side(guarded, "rival")
    order = door.order()
    address, theirs = door.pay_url(order), other.pay_url(other.order())
    bare, _, key = address.partition("?k=")
    assert (39, "sk_pay_") == (len(key), key[:7])
    wrong = key[:-1] + ("0" if key[-1] != "0" else "1")
    for query in (
        "",
        "?k=",
        f"?k={wrong}",
        f"?k={key}x",
        f"?k={theirs.partition('?k=')[2]}",
        "?k=%C3%A9",
    ):
        assert 404 == page(bare + query), query
    with closing(Console(guarded.url, "shop")) as payer:
        path = address.removeprefix(payer.base)
        shown = payer.open(path)
        assert 200 == shown.status
        stripped = payer.http.post(
            f"{bare}/pay", data=shown.form("Já paguei").values, headers={"Origin": payer.origin}
        )
        assert 404 == stripped.status_code
        assert "pending" == door.control("GET", f"/orders/{order['id']}").json()["order"]["status"]
        done = payer.send(shown, "Já paguei")
        assert ("Obrigado." in done.text, address) == (True, done.url)
    assert "paid" == door.control("GET", f"/orders/{order['id']}").json()["order"]["status"]


@pytest.mark.promise("secret-address-no-journal")
def test_the_key_of_a_pay_page_is_in_no_journal(guarded: Live) -> None:
    door = side(guarded, "unseen")
    address = door.pay_url(door.order())
    key = address.partition("?k=")[2]
    httpx2.get(address, verify=NO_TLS)
    httpx2.post(f"{door.url}/v2/orders?k={key}", verify=NO_TLS)
    for path in ("/requests?control=true&limit=100", "/requests.har?control=true"):
        found = door.control("GET", path)
        assert 200 == found.status_code
        assert key not in found.text
