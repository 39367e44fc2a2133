"""Credentials of a sandbox: whom they let in on a public and a plain server, and when they end."""

import asyncio
import gzip
import re
import socket
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from stub_server.core.slices import Sliced
from stub_server.data.filling import MERCHANT_ID
from stub_server.data.keys import MAIN_ID, pair_of
from stub_server.engine.history import state_at
from stub_server.operations.control import sandbox_history, sandbox_stream
from stub_server.server import server as served
from stub_server.server.explain.explaining import Explainer
from stub_server.settings import Settings
from stub_server.testing import Sandbox, Server

from ..support import forge
from ..support.console import Console
from ..support.files import HEADERS, exported, imported
from ..support.live import FROZEN, NO_TLS, running
from ..support.make import Json, created, done, object_of
from ..support.processes import Process
from ..support.wire import answer_on, connect

ADMIN = "a-long-admin-key"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server on loopback with an admin key."""
    with (
        running(replace(FROZEN, admin_key=ADMIN)) as live,
        closing(Server(live.url, ADMIN)) as server,
    ):
        yield server


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test is refused for what another one guessed."""
    monkeypatch.setattr(served, "MOST_WRONG", 1_000)


def status(url: str, credential: str, path: str = "/v2/customers?limit=1") -> int:
    """The status that a credential gets in the sandbox of an address."""
    bearer = {"Authorization": f"Bearer {credential}"}
    return httpx2.get(url + path, headers=bearer, verify=NO_TLS, timeout=30).status_code


def statuses(sandbox: Sandbox, credentials: Json) -> list[int]:
    """What the token and the private key of a sandbox get."""
    return [status(sandbox.url, credentials[name]) for name in ("jwt", "private_key")]


def given(sandbox: Sandbox) -> Json:
    """The credentials that the sandbox gives now."""
    return done(sandbox.control.get("/credentials"))


def opens(sandbox: Sandbox, control_key: str) -> bool:
    """Whether a control key opens the controls of a sandbox."""
    headers = {"X-Sandbox-Control-Key": control_key}
    clock = httpx2.get(f"{sandbox.url}/_sandbox/clock", headers=headers, verify=NO_TLS)
    return clock.status_code == 200


def pay_url(sandbox: Sandbox, order: Json) -> str:
    """The address of the page on which an order is paid."""
    return str(sandbox.control.get(f"/orders/{order['id']}").json()["pay_url"])


def rotate(sandbox: Sandbox) -> Json:
    """End all credentials of a sandbox; answers what is told of it."""
    return done(sandbox.control.post(f"/sandboxes/{sandbox.name}/rotate", json={}))


def page(address: str) -> int:
    """The status of a page."""
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
        token = forge.signed(Settings(), sandbox="default", merchant_id=MERCHANT_ID)
        assert 401 == status(server.url, token)
        assert 401 == status(server.url, pair_of(Settings().signing_secret(b""), 42, MAIN_ID)[1])


# -- deleted and rotated


@contextmanager
def ended(sandbox: Sandbox, order: Json) -> Iterator[None]:
    """What a sandbox gave before is worth nothing afterwards, and what it gives then is."""
    before = given(sandbox)
    address = pay_url(sandbox, order)
    made = api_key(sandbox, before["jwt"])
    assert [200, 200, 200] == [*statuses(sandbox, before), status(sandbox.url, made)]
    assert opens(sandbox, before["control_key"])
    assert 200 == page(address)
    yield
    after = given(sandbox)
    assert [401, 401] == statuses(sandbox, before)
    assert 401 == status(sandbox.url, before["public_key"], "/api-keys/info")
    assert not opens(sandbox, before["control_key"])
    assert 404 == page(address)
    assert [200, 200] == statuses(sandbox, after)
    assert 200 == status(sandbox.url, after["public_key"], "/api-keys/info")
    assert opens(sandbox, after["control_key"])


def api_key(sandbox: Sandbox, token: str) -> str:
    """The private half of a key that a user makes."""
    bearer = {"Authorization": f"Bearer {token}"}
    body = {"name": "Minha", "scopes": ["customers:read"]}
    answer = httpx2.post(f"{sandbox.url}/api-keys", json=body, headers=bearer, verify=NO_TLS)
    return str(created(answer)["api_key"]["private_key"])


@pytest.mark.promise("credentials-deleted-sandbox-not-open")
def test_the_next_sandbox_of_a_name_knows_no_credential_of_the_last(guarded: Server) -> None:
    """Not even a key that its users make in the same way."""
    sandbox = guarded.sandbox("remade")
    with ended(sandbox, sandbox.order()):
        old = api_key(sandbox, sandbox.token)
        guarded.forget("remade")
        again = guarded.sandbox("remade")
        for _ in range(2):
            assert old != api_key(again, again.token)
        assert 401 == status(sandbox.url, old)


@pytest.mark.promise("rotation-ends-tokens-seeded-keys")
def test_a_rotation_ends_what_was_given_at_once(guarded: Server) -> None:
    with guarded.sandbox("rotated") as sandbox:
        order = sandbox.order()
        with ended(sandbox, order):
            told = rotate(sandbox)
            now = given(sandbox)
            shown = told["sandbox"]["credentials"]
            assert now | {"jwt": shown["jwt"]} == shown  # a token says in which second it was given
        assert 200 == page(pay_url(sandbox, order))
        assert (1, False, ["Minha"]) == (
            told["keys_total"],
            told["keys_deleted"],
            [k["api_key"]["name"] for k in told["keys"]],
        )
        assert 200 == sandbox.control.get("/invariants").status_code
        steps = sandbox.control.get("/steps", params={"table": "api_keys"}).json()["steps"]
        assert "rotateSandbox" == steps[0]["cause"]["operation"]


@pytest.mark.promise("rotation-ends-tokens-seeded-keys")
def test_a_rotation_ends_what_was_admitted_and_waits_for_its_body(guarded: Server) -> None:
    with guarded.sandbox("waiting") as sandbox, ExitStack() as stack:
        before = given(sandbox)
        credentials = (
            ("/v2/projects", f"Authorization: Bearer {before['jwt']}"),
            ("/v2/projects", f"Authorization: Bearer {before['private_key']}"),
            ("/_sandbox/snapshots", f"X-Sandbox-Control-Key: {before['control_key']}"),
        )
        waiting = []
        for path, header in credentials:
            waiting.append(stack.enter_context(begun(sandbox.url + path, "POST", header)))
        rotate(sandbox)
        for connection, expected in zip(waiting, (401, 401, 403), strict=True):
            connection.sendall(b'{"name":"late"}')
            assert expected == answer_on(connection).status
        assert [] == sandbox.control.get("/snapshots").json()["snapshots"]


@pytest.mark.promise("credentials-deleted-sandbox-not-open")
@pytest.mark.parametrize(
    ("path", "method"),
    [("/s/{}/_sandbox/sandboxes/{}/rotate", "POST"), ("/_sandbox/sandboxes/{}/rotate", "POST"),
     ("/s/{}/_sandbox/inbox/shop/answer", "PUT")],
)  # fmt: skip
def test_what_waits_does_not_act_on_the_next_sandbox_of_the_name(
    guarded: Server, path: str, method: str
) -> None:
    """Its control key was checked before its body came: a rotation told the new credentials."""
    old = guarded.sandbox("next")
    key = f"X-Sandbox-Control-Key: {given(old)['control_key']}"
    address = guarded.url + path.format("next", "next")
    with begun(address, method, key) as waiting:
        guarded.forget("next")
        after = given(guarded.sandbox("next"))
        waiting.sendall(b"{            } ")
        assert 403 == answer_on(waiting).status
    assert [200, 200] == statuses(old, after)
    guarded.forget("next")


@contextmanager
def begun(url: str, method: str, header: str) -> Iterator[socket.socket]:
    """A request that was admitted, and whose body of 15 bytes is still to come."""
    address = urlsplit(url)
    lines = (
        f"{method} {address.path} HTTP/1.1",
        f"Host: {address.netloc}",
        header,
        "Content-Type: application/json",
        "Content-Length: 15",
        "Expect: 100-continue",
        "",
        "",
    )
    with connect(address.port or 80) as connection:
        connection.sendall("\r\n".join(lines).encode())
        assert connection.recv(1_000).startswith(b"HTTP/1.1 100 ")
        yield connection


@pytest.mark.promise("rotation-ends-tokens-seeded-keys")
@pytest.mark.parametrize("asked", ["rewind", "explain"])
def test_who_waits_is_not_told_the_credentials_of_the_next_generation(
    guarded: Server, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """A rewind shows the sandbox, an explanation a call that works: both with what opens it."""
    begun = Event()
    rotated = Event()

    def waiting(*arguments: Any) -> Sliced[Any]:
        begun.set()
        while not rotated.is_set():
            yield
        return (yield from state_at(*arguments))

    async def waiting_too(self: Explainer, *arguments: Any) -> Any:
        begun.set()
        while not rotated.is_set():
            await asyncio.sleep(0)
        return await explained(self, *arguments)

    explained = Explainer.explain_now
    monkeypatch.setattr(sandbox_history, "state_at", waiting)
    monkeypatch.setattr(Explainer, "explain_now", waiting_too)
    with guarded.sandbox(f"told-{asked}") as sandbox, ThreadPoolExecutor(1) as beside:
        bearer = {"Authorization": f"Bearer {sandbox.token}"}
        wrong = httpx2.post(f"{sandbox.url}/v2/plans", json={}, headers=bearer, verify=NO_TLS)
        method, path = {
            "rewind": ("POST", "/rewind"),
            "explain": ("GET", f"/requests/{wrong.headers['x-request-id']}"),
        }[asked]
        answered = beside.submit(
            httpx2.request,
            method,
            f"{sandbox.url}/_sandbox{path}",
            json={"to_step": 0} if method == "POST" else None,
            headers={"X-Sandbox-Control-Key": given(sandbox)["control_key"]},
            verify=NO_TLS,
            timeout=30,
        )
        assert begun.wait(30)
        newest = rotate(sandbox)["sandbox"]["credentials"]
        rotated.set()
        assert 403 == answered.result().status_code
        assert newest["control_key"] not in answered.result().text
        assert "eyJ" not in answered.result().text
        (step,) = sandbox.control.get("/steps", params={"limit": 1}).json()["steps"]
        assert "rotateSandbox" == step["cause"]["operation"]  # nor was it done


@pytest.mark.promise("rotation-ends-tokens-seeded-keys")
def test_a_stream_that_is_read_after_a_rotation_ends(
    guarded: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client may begin to read half a minute after its key was checked."""
    begun = Event()
    rotated = Event()
    follow = sandbox_stream.Place.followed

    async def waiting(*arguments: Any) -> AsyncGenerator[bytes, None]:
        begun.set()
        while not rotated.is_set():
            await asyncio.sleep(0)
        async for piece in follow(*arguments):
            yield piece

    monkeypatch.setattr(sandbox_stream.Place, "followed", waiting)
    with guarded.sandbox("streamed") as sandbox, ThreadPoolExecutor(1) as beside:
        key = {"X-Sandbox-Control-Key": given(sandbox)["control_key"]}
        address = f"{sandbox.url}/_sandbox/stream"
        read = beside.submit(httpx2.get, address, headers=key, verify=NO_TLS, timeout=10)
        assert begun.wait(30)
        rotate(sandbox)
        rotated.set()
        assert "event: " not in read.result().text


def test_a_control_key_rotates_its_own_sandbox_alone(guarded: Server) -> None:
    with guarded.sandbox("own-rotation") as sandbox, guarded.sandbox("not-mine") as other:
        key = {"X-Sandbox-Control-Key": given(sandbox)["control_key"]}

        def turned(server: str, name: str) -> httpx2.Response:
            address = f"{server}/_sandbox/sandboxes/{name}/rotate"
            return httpx2.post(address, headers=key, verify=NO_TLS)

        for name in ("not-mine", "default", "no-such-one"):
            for url in (sandbox.url, f"{guarded.url}/s/{name}", guarded.url):
                refused = turned(url, name)
                assert 403 == refused.status_code, (url, name)
                assert "admin_key_required" == refused.json()["code"], (url, name)
        assert 200 == status(other.url, other.token)
        done(turned(guarded.url, "own-rotation"))
        assert 403 == turned(guarded.url, "own-rotation").status_code


@pytest.mark.promise("nothing-goes-back-time-brings")
def test_nothing_that_goes_back_brings_a_generation_back(guarded: Server) -> None:
    """A reset, a rewind, a snapshot, a file and an earlier state all know the newest
    credentials alone.
    """
    with guarded.sandbox("back") as sandbox:
        order = sandbox.order()
        control = sandbox.control
        control.post("/snapshots", json={"name": "before"})
        step = control.get("/sandboxes/back").json()["sandbox"]["step"]
        file = exported(control, history=True)
        with ended(sandbox, order):
            newest = rotate(sandbox)["sandbox"]["credentials"]
            for path, more in (
                ("/rewind", {"json": {"to_step": step}}),
                ("/snapshots/before/restore", {}),
                ("/import", {"content": file, "headers": HEADERS}),
                ("/rewind", {"json": {"to_step": 0}}),
                ("/reset", {}),
            ):
                answer = control.request("POST", path, **more)
                assert 200 == answer.status_code, (path, answer.text)
                assert [200, 200] == statuses(sandbox, newest), path
                assert opens(sandbox, newest["control_key"]), path
                assert newest["public_key"] == given(sandbox)["public_key"], path
                assert 200 == control.get("/invariants").status_code, path


def signing_keys(file: bytes) -> set[str]:
    """The signing keys of the webhooks in a file."""
    return set(re.findall(r"whsec_[A-Za-z0-9+/=]+", gzip.decompress(file).decode()))


@pytest.mark.promise("credential-of-one-sandbox")
def test_no_sandbox_signs_with_keys_of_another(guarded: Server) -> None:
    """Nor one that was made from the same file, or with the name of one that was deleted."""
    known = set[str]()
    for name in ("signs", "signs", "alike"):
        with guarded.sandbox(name) as sandbox:
            control = sandbox.control
            found = signing_keys(exported(control))
            file = exported(control, secrets=False)
            imported(control, file)
            found |= signing_keys(exported(control))
        assert found
        assert known.isdisjoint(found), name
        known |= found


@pytest.mark.promise("nothing-goes-back-time-brings")
def test_no_key_is_given_twice(guarded: Server) -> None:
    """A key of few scopes that was deleted would be the next one that is made after a reset."""
    with guarded.sandbox("twice") as sandbox:

        def made(*scopes: str) -> Json:
            key = {"name": "Partner", "scopes": scopes}
            return object_of(created(sandbox.api.post("/api-keys", json=key)), "api_key")

        file = exported(sandbox.control)
        few = made("plans:read")
        assert 200 == sandbox.api.delete(f"/api-keys/{few['id']}").status_code
        for begin in (
            lambda: sandbox.control.post("/reset").raise_for_status(),
            lambda: imported(sandbox.control, file),
        ):
            begin()
            made("customers:read")
            made("customers:read")
            assert 401 == status(sandbox.url, few["private_key"])


def test_a_rotation_survives_a_restart(tmp_path: Path) -> None:
    """So does the generation of a sandbox that was never rotated."""
    process = Process(
        "--admin-key", ADMIN, "--store", str(tmp_path / "store"), "--scenario", "empty"
    )
    with closing(Server(process.url, ADMIN)) as server:
        with process:
            kept = server.sandbox("kept")
            rotated = server.sandbox("rotated")
            rotated.control.post("/snapshots", json={"name": "before"})
            before = given(kept), given(rotated)
            newest = rotate(rotated)["sandbox"]["credentials"]
            process.stop()
        with process:
            assert [200, 200] == statuses(kept, before[0])
            for _ in range(2):
                assert [401, 401] == statuses(rotated, before[1])
                assert [200, 200] == statuses(rotated, newest)
                assert not opens(rotated, before[1]["control_key"])
                assert opens(rotated, newest["control_key"])
                restored = rotated.control.post("/snapshots/before/restore")
                assert 200 == restored.status_code


# -- pay links


@pytest.mark.promise("only-whole-address-pay-page")
def test_a_pay_page_of_a_public_server_needs_its_key(guarded: Server) -> None:
    """An id that somebody may know from the seed, or from another sandbox, opens and
    pays nothing.
    """
    with guarded.sandbox("shop") as sandbox, guarded.sandbox("rival") as other:
        order = sandbox.order()
        address = pay_url(sandbox, order)
        theirs = pay_url(other, other.order())
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
            shown = payer.open(address.removeprefix(payer.base))
            assert 200 == shown.status
            stripped = payer.http.post(
                f"{bare}/pay", data=shown.form("Já paguei").values, headers={"Origin": payer.origin}
            )
            assert 404 == stripped.status_code
            path = f"/orders/{order['id']}"
            assert "pending" == sandbox.control.get(path).json()["order"]["status"]
            done = payer.send(shown, "Já paguei")
            assert ("Obrigado." in done.text, address) == (True, done.url)
        assert "paid" == sandbox.control.get(path).json()["order"]["status"]


@pytest.mark.promise("secret-address-no-journal")
def test_the_key_of_a_pay_page_is_in_no_journal(guarded: Server) -> None:
    with guarded.sandbox("unseen") as sandbox:
        address = pay_url(sandbox, sandbox.order())
        key = address.partition("?k=")[2]
        httpx2.get(address, verify=NO_TLS)
        httpx2.post(f"{sandbox.url}/v2/orders?k={key}", verify=NO_TLS)
        for path in ("/requests?control=true&limit=100", "/requests.har?control=true"):
            assert key not in str(done(sandbox.control.get(path)))


@pytest.mark.promise("rotation-ends-tokens-seeded-keys")
def test_a_rotation_ends_who_waits_for_events() -> None:
    with (
        running(replace(FROZEN, admin_key=ADMIN, scenario="empty")) as live,
        closing(Server(live.url, ADMIN)) as server,
        ThreadPoolExecutor(1) as beside,
    ):
        sandbox = server.sandbox("waiting")
        headers = {"X-Sandbox-Control-Key": given(sandbox)["control_key"]}
        address = f"{sandbox.url}/_sandbox/events?wait=20"
        entry = live.app.sandboxes.entry("waiting")
        uses = entry.uses
        asked = beside.submit(httpx2.get, address, headers=headers, verify=NO_TLS, timeout=30)
        while entry.uses == uses:
            assert not asked.done(), asked.result().text
        rotate(sandbox)
        assert 403 == asked.result().status_code
