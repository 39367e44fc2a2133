"""Which requests a recording has, and that each is sent again as it was and at its own time."""

import socket
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from time import monotonic, sleep, time
from urllib.parse import urlsplit

import httpx2
import pytest

from ..support.files import lines
from ..support.live import NO_TLS, Live
from ..support.make import Json, created, customer_body, make_project
from ..support.recordings import PATIENCE, Replayed, recorded
from .hooks import clients

pytestmark = pytest.mark.check

TOO_MUCH = 1_048_577  # bytes of a body


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a recording goes."""
    return tmp_path / "bug.stub"


def test_a_recording_that_is_made_after_a_token_expired_replays(serve: Callable[..., Live], file: Path) -> None:
    """On a running clock each request is sent at the machine's time at which it was made, however old the file is.

    Whether the token was used to change something, or to read alone.
    """
    with clients(serve(now=None, scenario="empty", seed=41)) as (_, control):
        worlds = []
        for is_changed in (False, True):
            made = created(control.post("/sandboxes", json={}))["sandbox"]
            url = made["base_url"]
            token = created(control.post(f"{url}/_sandbox/tokens", json={"expires_in": 3}))
            bearer = {"Authorization": f"Bearer {token['token']}"}
            if is_changed:
                created(control.post(f"{url}/v2/customers", json=customer_body(), headers=bearer))
            assert 200 == control.get(f"{url}/v2/customers", headers=bearer).status_code
            worlds.append((url, bearer, is_changed))
        sleep(max(0.0, datetime.fromisoformat(token["expires_at"]).timestamp() - time()) + 1)
        for url, bearer, is_changed in worlds:
            assert 401 == control.get(f"{url}/v2/customers", headers=bearer).status_code
            # which names the time of its request
            early = control.post(f"{url}/_sandbox/rewind", json={"to": "2999-01-01T00:00:00Z"})
            assert 409 == early.status_code
            sleep(0.1)
            recording = control.get(f"{url}/_sandbox/export", params={"requests": "true"})
            file.write_bytes(recording.content)
            replayed = Replayed(file)
            assert (0, 4 + is_changed) == (replayed.code, replayed.told.get("same")), (replayed.error, replayed.told)


def test_what_came_with_a_body_that_nobody_kept_is_left_aside_and_counted(
    serve: Callable[..., Live], file: Path
) -> None:
    """Too large a one, one that its client broke off, and a file that was no sandbox."""

    def pieces() -> Iterator[bytes]:
        for _ in range(TOO_MUCH // 4096 + 1):
            yield b" " * 4096

    server = serve(scenario="empty", seed=42)
    with clients(server) as (api, control):
        assert 200 == control.post("/reset").status_code
        headers = {"Content-Type": "application/json"}
        assert 413 == api.post("/v2/customers", content=b" " * TOO_MUCH, headers=headers).status_code
        assert 413 == api.post("/v2/customers", content=pieces(), headers=headers).status_code
        assert 413 == control.post("/clock/advance", content=b" " * TOO_MUCH, headers=headers).status_code
        world = {"Content-Type": "application/vnd.stub.sandbox+gzip"}
        assert 422 == control.post("/import", content=b"no such file", headers=world).status_code
        _left(server, b"POST /v2/customers HTTP/1.1", api.headers["authorization"], b"content-length: 9\r\n\r\n{")
        _kept(control, path="/v2/customers", status="400")
        created(api.post("/v2/customers", json=customer_body()))
        assert 422 == api.post("/v2/customers", content=iter([]), headers=headers).status_code, "empty, in chunks"
        assert 422 == api.request("GET", "/v2/customers?page=0", json={}).status_code, "not asked for"
        assert 401 == httpx2.post(f"{server.url}/v2/customers", content=b" " * TOO_MUCH, verify=NO_TLS).status_code, (
            "not looked at"
        )
        replayed = Replayed(recorded(control, file))
        assert (0, 4) == (replayed.code, replayed.told["same"]), replayed.told["diff"]
        assert {"body_not_kept": 4, "connection": 1} == _counts(replayed)


def test_what_was_refused_for_its_connection_is_left_aside_and_counted(serve: Callable[..., Live], file: Path) -> None:
    """A header that stood twice, a WebSocket, a client that left while its request was delayed."""
    server = serve(scenario="empty", seed=43)
    with clients(server) as (api, control):
        assert 200 == control.post("/reset").status_code
        twice = [("Authorization", "Bearer one"), ("Authorization", "Bearer two")]
        with httpx2.Client(base_url=server.url, verify=NO_TLS) as plain:
            assert 400 == plain.get("/v2/customers", headers=twice).status_code
        websocket = {"Connection": "Upgrade", "Upgrade": "websocket"}
        assert 400 == api.get("/v2/customers", headers=websocket).status_code
        late = b"x-sandbox-delay: 20000\r\n\r\n"
        _left(server, b"GET /v2/orders HTTP/1.1", api.headers["authorization"], late)
        _kept(control, path="/v2/orders", status="400")
        assert 400 == api.get("/v2/customers", headers={"Prefer": "code=999"}).status_code
        assert 400 == api.get("/v2/customers", headers={"X-Sandbox-As-Of": "noon"}).status_code
        replayed = Replayed(recorded(control, file))
        assert (0, 2) == (replayed.code, replayed.told["same"]), replayed.told["diff"]
        assert {"connection": 3} == _counts(replayed)


def test_a_body_that_its_operation_does_not_take_keeps_nothing_out_of_a_recording(
    serve: Callable[..., Live], file: Path
) -> None:
    """Many clients send an empty object with every POST."""
    with clients(serve(scenario="empty", seed=44)) as (api, control):
        assert 200 == control.post("/reset").status_code
        made = make_project(api)["id"]
        deleted = api.request("DELETE", f"/v2/projects/{made}", json={"why": "closed"})
        assert 200 == deleted.status_code, deleted.text
        assert 200 == control.patch("/clock", json={"frozen": True}).status_code
        found = lines(recorded(control, file).read_bytes())
        (about,) = [body for kind, body in found if kind == "recording"]
        assert (3, 0) == (about["recorded"], about["left_out"])
        replayed = Replayed(file)
        assert (0, 3) == (replayed.code, replayed.told["same"]), replayed.told["diff"]


def test_what_was_refused_under_a_mistyped_name_replays(serve: Callable[..., Live], file: Path) -> None:
    """The default sandbox's recording has it, at its own time: its clock is not that of a sandbox to be made."""
    server = serve(now=None, scenario="empty", seed=45)
    with clients(server) as (api, control):
        assert 200 == control.post("/reset").status_code
        assert 200 == control.post("/clock/advance", json={"days": 9}).status_code
        created(api.post("/v2/customers", json=customer_body()))
        for _ in range(2):
            assert 401 == httpx2.get(f"{server.url}/s/mistyped/v2/plans", verify=NO_TLS).status_code
        created(api.post("/v2/customers", json=customer_body()))
        replayed = Replayed(recorded(control, file))
        assert (0, 5) == (replayed.code, replayed.told["same"]), replayed.told["diff"]


def _left(server: Live, line: bytes, authorization: str, rest: bytes) -> None:
    """Send a request, or a part of it, and leave without waiting for the answer."""
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        head = b"\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: "
        connection.sendall(line + head + authorization.encode() + b"\r\n" + rest)
        sleep(0.1)


def _kept(control: httpx2.Client, **query: str) -> Json:
    """The request of the journal that a query means, once it is there."""
    until = monotonic() + PATIENCE
    while not (found := control.get("/requests", params=query).json()["requests"]):
        assert monotonic() < until
        sleep(0.05)
    row: Json = found[0]
    return row


def _counts(replayed: Replayed) -> dict[str, int]:
    return {reason: found["count"] for reason, found in replayed.told["aside_by_reason"].items()}
