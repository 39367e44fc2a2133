"""A sandbox as a file: what is exported here and imported there is the same sandbox."""

import gzip
from collections.abc import Iterator
from contextlib import closing, suppress
from hashlib import sha256
from secrets import token_urlsafe
from socket import SO_RCVBUF, SOL_SOCKET, socket
from time import monotonic, sleep
from typing import Any

import httpx2
import pytest

from stub_server.core.signing import sign
from stub_server.operations.control import sandbox_files
from stub_server.server import reply
from stub_server.testing import Sandbox, Server

from ..conftest import Serve
from ..support.files import HEADERS, changed, exported, imported, lines
from ..support.live import NO_TLS, Live
from ..support.make import Json, created, customer_body, done, order_body
from ..support.receiver import Receiver
from ..support.refusal import says
from .hooks import CREATED

LISTS = (
    "/v2/customers?limit=100",
    "/v2/orders?limit=100&sort=totalAmount",
    "/v2/orders?limit=100&page=7",
    "/v2/subscriptions?limit=100",
    "/v2/plans?limit=100",
    "/v2/products?limit=100",
    "/v2/projects?limit=100",
    "/v2/webhooks?limit=100",
    "/v2/webhooks/logs?limit=100",
)


@pytest.fixture(scope="module")
def live(small: Live) -> Live:
    """Files of small worlds."""
    return small


@pytest.fixture
def here(sandbox: Sandbox) -> Sandbox:
    """A sandbox with something in it beside its seed."""
    sandbox.customer()
    return sandbox


def answers(side: Sandbox) -> dict[str, bytes]:
    """What the lists and the events of a sandbox are."""
    found = {path: side.api.get(path) for path in LISTS}
    found["events"] = side.control.get("/events", params={"limit": 100})
    assert {200} == {answer.status_code for answer in found.values()}
    return {path: answer.content for path, answer in found.items()}


def test_the_same_sandbox_gives_the_same_file(here: Sandbox) -> None:
    first = here.control.get("/export")
    assert "application/vnd.stub.sandbox+gzip" == first.headers["content-type"]
    assert f'attachment; filename="{here.name}.sandbox"' == first.headers["content-disposition"]
    answers(here)
    assert first.content == exported(here.control)
    created(here.api.post("/v2/customers", json=customer_body()))
    assert first.content != exported(here.control)
    recording = here.control.get("/export", params={"requests": True})
    assert f'attachment; filename="{here.name}.stub"' == recording.headers["content-disposition"]


def test_how_often_a_deleted_key_was_used_is_forgotten(here: Sandbox) -> None:
    """What is made, used and deleted again and again must not fill the memory."""
    body = {"name": "Chave", "scopes": ["customers:read"]}
    key = created(here.api.post("/api-keys", json=body))["api_key"]
    used = {"Authorization": f"Bearer {key['private_key']}"}
    assert 200 == here.api.get("/v2/customers", headers=used).status_code
    assert 200 == here.api.delete(f"/api-keys/{key['id']}").status_code
    merchants = [body for kind, body in lines(exported(here.control)) if kind == "merchant"]
    assert not any(key["id"] in merchant["usage"] for merchant in merchants)


def test_a_file_says_what_it_is(live: Live, here: Sandbox) -> None:
    header, world = (body for _, body in lines(exported(here.control))[:2])
    assert ("stub.sandbox", 14, True) == (header["format"], header["version"], header["secrets"])
    assert says(header["note"], "signing keys")
    assert (here.name, live.settings.scenario, 42, 1) == (
        world["name"],
        world["scenario"],
        world["seed"],
        world["step"],
    )


def test_an_imported_sandbox_answers_as_the_one_that_was_exported(
    here: Sandbox, there: Sandbox
) -> None:
    """Also what is made next: ids, codes and times come from where the other's had come to."""
    body = imported(there.control, exported(here.control))
    assert (there.name, None, 1) == (body["name"], body["parent"], body["step"])
    assert answers(here) == answers(there)
    body = customer_body()
    assert (
        here.api.post("/v2/customers", json=body).content
        == there.api.post("/v2/customers", json=body).content
    )
    for side in (here, there):
        assert 200 == side.control.post("/clock/advance", json={"days": 40}).status_code
    assert answers(here) == answers(there)


@pytest.mark.promise("file-without-secrets")
def test_a_file_without_secrets_has_none_and_is_given_new_ones(
    here: Sandbox, there: Sandbox, receiver: Receiver
) -> None:
    headers = [{"name": "X-Token", "value": "a-secret-of-the-receivers"}]
    body = {"url": receiver.url, "events": ["*"], "headers": headers}
    hook = created(here.api.post("/v2/webhooks", json=body))["webhook"]
    assert 200 == here.api.post(f"/v2/webhooks/{hook['id']}/test").status_code
    made = created(here.api.post("/api-keys", json={"name": "k", "scopes": ["customers:read"]}))
    key = made["api_key"]["private_key"]
    own = here.control.get("/credentials").json()["private_key"]
    with_secrets, without = (
        gzip.decompress(exported(here.control, secrets=told)).decode() for told in (True, False)
    )
    digest = sha256(key.encode()).hexdigest()
    for secret in (hook["signing_key"], digest, "a-secret-of-the-receivers"):
        assert secret in with_secrets
        assert secret not in without
    for text in (with_secrets, without):  # of API keys the server itself keeps digests alone
        assert own not in text
        assert key not in text
    assert "whsec_" not in without
    sample = here.control.get("/credentials").json()["sample"]
    order = order_body(sample["projectId"], sample["planId"])
    created(
        here.api.post("/v2/orders/pix", json=order, headers={"Idempotency-Key": "told-to-nobody"})
    )
    assert b"told-to-nobody" in gzip.decompress(exported(here.control, history=True))
    assert b"told-to-nobody" not in gzip.decompress(
        exported(here.control, secrets=False, history=True)
    )
    assert '"reply"' not in without
    imported(there.control, exported(here.control, secrets=False, history=True))
    receiver.requests.clear()
    assert 200 == there.api.post(f"/v2/webhooks/{hook['id']}/test").status_code
    (request,) = receiver.requests
    stamp = int(request.headers["webhook-timestamp"])
    signed = request.headers["webhook-signature"]
    assert sign(hook["signing_key"], request.headers["webhook-id"], stamp, request.body) != signed
    used = httpx2.get(
        f"{there.url}/v2/customers", headers={"Authorization": f"Bearer {key}"}, verify=NO_TLS
    )
    assert 401 == used.status_code
    assert 201 == there.api.post("/v2/customers", json=customer_body()).status_code


@pytest.mark.promise("file-without-user-names")
def test_a_file_without_secrets_names_no_user_of_an_address(here: Sandbox, there: Sandbox) -> None:
    """None can be registered, but a file may bring one. A query stays."""

    def named(body: Any) -> None:
        body["public"]["url"] = "https://user:pass-word@hooks.example.com/x?token=kept"

    spoilt = changed(exported(here.control), "record", named, "webhooks")
    spoilt = changed(spoilt, "record", named, "webhook_logs")
    imported(there.control, spoilt)
    whole, without = (
        gzip.decompress(exported(there.control, secrets=told)) for told in (True, False)
    )
    assert (2, 0) == (whole.count(b"pass-word"), without.count(b"pass-word"))
    assert 2 == without.count(b'"https://hooks.example.com/x?token=kept"')


@pytest.mark.parametrize("history", [True, False])
def test_steps_are_carried_where_they_are_asked_for(
    here: Sandbox, there: Sandbox, *, history: bool
) -> None:
    for _ in range(3):
        created(here.api.post("/v2/customers", json=customer_body()))
    assert 4 == imported(there.control, exported(here.control, history=history))["step"]
    fork = f"/sandboxes/{there.name}/fork"
    answer = there.control.post(fork, json={"name": f"{there.name}-2", "step": 2})
    if history:
        assert 2 == answer.json()["sandbox"]["step"]
        assert 204 == there.control.delete(f"/sandboxes/{there.name}-2").status_code
    else:
        assert (409, "step_not_kept") == (answer.status_code, answer.json()["code"])
    assert 201 == there.control.post(fork, json={"name": f"{there.name}-2", "step": 4}).status_code
    assert 204 == there.control.delete(f"/sandboxes/{there.name}-2").status_code


def test_an_import_says_what_it_replaces_and_begins_a_journal(
    here: Sandbox, there: Sandbox
) -> None:
    created(here.api.post("/v2/customers", json=customer_body()))
    old = created_by(there, customer_body())
    was = there.control.get(f"/sandboxes/{there.name}").json()["sandbox"]
    answer = there.control.post("/import", content=exported(here.control), headers=HEADERS)
    assert {"step": was["step"], "records": was["records"], "now": was["now"]} == answer.json()[
        "replaced"
    ]
    assert [] == there.control.get("/requests").json()["requests"]
    assert "step_not_kept" == there.control.post("/rewind", json={"to_request": old}).json()["code"]


_ID = "6b0ad62c-54f5-4c6e-9d0a-3f2c8d1a7e90"
SOMEBODY = {"kind": "jwt", "key_id": None, "subject": _ID, "merchant_id": _ID}


@pytest.mark.parametrize(
    "odd",
    [
        {"path": "@evil.example/v2/customers"},
        {"path": ".evil.example/v2/customers"},
        {"status": 99},
        {"caller": {"kind": "jwt", "key_id": None, "claims": {}, "subject": "x"}},
        {"caller": SOMEBODY | {"claims": {"rest": [[]]}}},
        {"caller": SOMEBODY | {"claims": {"rest": "x" * 4_097}}},
        {"code": "x" * 1_001},
        {"simulated": "x" * 1_001},
        {"operation": "x" * 1_001},
    ],
    ids=lambda odd: str(odd)[:60],
)
def test_a_recording_of_requests_that_nobody_sends_is_refused(
    here: Sandbox, there: Sandbox, odd: Json
) -> None:
    """The command that sends the first two again would give a token to another machine, and the
    last ones took memory that no limit counted.
    """
    file = changed(exported(here.control, requests=True), "request", lambda each: each.update(odd))
    answer = there.control.post("/import", content=file, headers=HEADERS)
    assert (422, "unusable_file") == (answer.status_code, answer.json()["code"])


@pytest.mark.parametrize(
    "odd",
    [
        {"answer": '{"message":5}', "status": 422},
        {"answer": '{"message":"no","details":[1]}', "status": 422},
        {"answer": '{"now":5}', "status": 200},
        {"answer": '{"sandbox":{"name":5}}', "status": 201},
    ],
    ids=str,
)
def test_an_answer_of_another_shape_in_a_recording_is_shown(
    here: Sandbox, there: Sandbox, odd: Json
) -> None:
    """Also by the line that says what became of an action."""
    file = exported(here.control, requests=True)
    imported(there.control, changed(file, "request", lambda each: each.update(odd)))
    (found,) = there.control.get("/requests").json()["requests"]
    assert 200 == there.control.get(f"/requests/{found['id']}").status_code
    page = f"{there.url}/console/requests?done={found['id']}"
    assert 200 == httpx2.get(page, verify=NO_TLS).status_code


def created_by(side: Sandbox, body: Json) -> str:
    """The id of the request that makes a customer."""
    answer = side.api.post("/v2/customers", json=body)
    created(answer)
    return answer.headers["X-Request-Id"]


@pytest.mark.promise("importer-decides-webhooks")
@pytest.mark.parametrize(
    ("made", "brought", "error"),
    [
        ("http://localhost:3000", "https://named.example", "blocked"),
        ("https://named.example", "http://localhost:3000", None),
    ],
)
def test_whoever_imports_a_file_decides_whether_its_webhooks_reach_private_addresses(
    serve: Serve, receiver: Receiver, sandbox_name: str, made: str, brought: str, error: str | None
) -> None:
    """A file does not say by whom an address was chosen, nor do its steps and snapshots."""
    live = serve(cors_origins=("https://named.example",))
    with (
        closing(Server(live.url)) as server,
        server.sandbox(sandbox_name) as here,
        server.sandbox(f"{sandbox_name}-2") as there,
    ):
        body = {"url": receiver.url, "events": CREATED}
        ident = created(here.api.post("/v2/webhooks", json=body, headers={"Origin": made}))[
            "webhook"
        ]["id"]
        created(here.control.post("/snapshots", json={"name": "before"}))
        assert 200 == here.api.put(f"/v2/webhooks/{ident}", json={"name": "later"}).status_code
        there.control.headers["Origin"] = brought
        imported(there.control, exported(here.control, history=True))
        errors = [error_of_an_event(there, ident)]
        assert 200 == there.control.post("/rewind", json={"to_step": 1}).status_code
        errors.append(error_of_an_event(there, ident))
        assert 200 == there.control.post("/snapshots/before/restore").status_code
        errors.append(error_of_an_event(there, ident))
    assert ([error] * 3, 0 if error else 3) == (errors, len(receiver.requests))


def error_of_an_event(side: Sandbox, webhook: str) -> str | None:
    """The error of a delivery of an event to a webhook that is due at once."""
    created(side.api.post("/v2/customers", json=customer_body()))
    assert 200 == side.control.post("/webhooks/drain", json={"held": True}).status_code
    log, *_ = side.api.get("/v2/webhooks/logs", params={"webhookId": webhook}).json()["logs"]
    whole = done(side.api.get(f"/v2/webhooks/logs/{log['id']}"))["log"]
    error: str | None = whole["attempts"][-1]["error"]
    return error


@pytest.fixture
def large(live: Live, here: Sandbox) -> Iterator[socket]:
    """A sandbox whose file takes more than fifteen megabytes, and one who asks for it and
    does not read.
    """
    assert 200 == here.control.post("/reset", json={"scenario": "empty"}).status_code
    for _ in range(40):
        noise = {f"k{part}": token_urlsafe(370) for part in range(40)}
        created(here.api.post("/v2/customers", json=customer_body(metadata=noise)))
    for number in range(19):
        created(here.control.post("/snapshots", json={"name": f"s{number}"}))
    with socket() as his:
        his.setsockopt(SOL_SOCKET, SO_RCVBUF, 4_096)
        his.connect(("127.0.0.1", live.port))
        his.sendall(
            f"GET /s/{here.name}/_sandbox/export HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        )
        yield his


@pytest.mark.promise("downloads")
@pytest.mark.check
def test_a_reader_of_a_file_who_does_not_read_is_cut_off_and_holds_little(
    live: Live, here: Sandbox, large: socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What he does not take waits on the disk; the server has a few buffers of it ready. He takes
    the places of his sandbox alone.
    """
    monkeypatch.setattr(reply, "PATIENCE", 1)
    monkeypatch.setattr(sandbox_files, "OF_SANDBOX", 1)
    large.settimeout(20)
    received = len(large.recv(1))  # the file is packed
    assert 429 == here.control.get("/export").status_code
    assert 200 == httpx2.get(f"{live.url}/_sandbox/export", verify=NO_TLS).status_code
    assert nothing_on_its_way(live)
    with suppress(ConnectionResetError):
        while part := large.recv(65_536):
            received += len(part)
    assert 0 < received < 8_000_000
    whole = here.control.get("/export")
    assert 9_000_000 < len(whole.content) == int(whole.headers["content-length"])
    assert 40 * 20 == [
        body["table"] for kind, body in lines(whole.content) if kind == "record"
    ].count("customers")


def nothing_on_its_way(live: Live) -> bool:
    """Whether the last file goes soon."""
    until = monotonic() + 10
    while live.app.server.underway.downloads and monotonic() < until:
        sleep(0.01)
    return not live.app.server.underway.downloads
