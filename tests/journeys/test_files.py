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

from stub_server.events.signing import sign
from stub_server.http import answers
from stub_server.operations.control import sandbox_files

from ..conftest import Serve
from ..support.estate import client
from ..support.files import HEADERS, changed, exported, imported, lines, sealed
from ..support.live import NO_TLS, Live
from ..support.make import HELD, Json, Maker, created, customer_body, order_body
from ..support.receiver import Receiver
from ..support.refusal import refused, says
from ..support.wire import answer_on, connect
from .hooks import CREATED, Hook, drain, event

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


class Side:
    """A sandbox as its user meets it: the API with a token, and the control surface."""

    def __init__(self, live: Live, name: str) -> None:
        self.name, self.url = name, f"{live.url}/s/{name}"
        self.control = httpx2.Client(base_url=f"{self.url}/_sandbox", timeout=60, verify=NO_TLS)
        self.api = client(live, name, self.control.get("/credentials").json()["jwt"])

    def answers(self) -> dict[str, bytes]:
        """What its lists and its events are."""
        found = {path: self.api.get(path) for path in LISTS}
        found["events"] = self.control.get("/events", params={"limit": 100})
        assert {200} == {answer.status_code for answer in found.values()}
        return {path: answer.content for path, answer in found.items()}

    def close(self) -> None:
        """Close its connections."""
        self.api.close()
        self.control.close()


@pytest.fixture
def here(live: Live, sandbox_name: str) -> Iterator[Side]:
    """A sandbox with something in it beside its seed."""
    side = Side(live, sandbox_name)
    created(side.api.post("/v2/customers", json=customer_body()))
    yield side
    side.close()


@pytest.fixture
def there(live: Live, sandbox_name: str) -> Iterator[Side]:
    """Another sandbox of the same server."""
    side = Side(live, f"{sandbox_name}-there")
    yield side
    side.close()
    live.forget(side.name)


@pytest.fixture
def far(live: Live, serve: Serve, sandbox_name: str) -> Iterator[Side]:
    """A sandbox of the same name on another server that has the same seed and shows the same address."""
    server = serve(base_url=live.url, scenario=live.settings.scenario)
    side = Side(server, sandbox_name)
    yield side
    side.close()
    server.forget(side.name)


def test_the_same_sandbox_gives_the_same_file(here: Side) -> None:
    first = here.control.get("/export")
    assert "application/vnd.stub.sandbox+gzip" == first.headers["content-type"]
    assert f'attachment; filename="{here.name}.sandbox"' == first.headers["content-disposition"]
    here.answers()
    assert first.content == exported(here.control)
    created(here.api.post("/v2/customers", json=customer_body()))
    assert first.content != exported(here.control)
    recording = here.control.get("/export", params={"requests": True})
    assert f'attachment; filename="{here.name}.stub"' == recording.headers["content-disposition"]


def test_a_file_says_what_it_is(live: Live, here: Side) -> None:
    header, world = (body for _, body in lines(exported(here.control))[:2])
    assert ("stub.sandbox", 5, True) == (header["format"], header["version"], header["secrets"])
    assert says(header["note"], "signing keys")
    assert (here.name, live.settings.scenario, 42, 1) == (
        world["name"],
        world["scenario"],
        world["seed"],
        world["step"],
    )


def test_an_imported_sandbox_answers_as_the_one_that_was_exported(here: Side, there: Side) -> None:
    """Also what is made next: ids, codes and times come from where the other's had come to."""
    body = imported(there.control, exported(here.control))
    assert (there.name, None, 1) == (body["name"], body["parent"], body["step"])
    assert here.answers() == there.answers()
    shown = [side.control.get("/clock").json() for side in (here, there)]
    assert 1 == len({(clock["now"], clock["frozen"], clock["next_due"], clock["pending_timers"]) for clock in shown})
    body = customer_body()
    assert here.api.post("/v2/customers", json=body).content == there.api.post("/v2/customers", json=body).content
    for side in (here, there):
        assert 200 == side.control.post("/clock/advance", json={"days": 40}).status_code
    assert here.answers() == there.answers()


@pytest.mark.check
def test_a_file_that_went_to_another_server_and_is_exported_there_is_the_same(here: Side, far: Side) -> None:
    file = exported(here.control, history=True)
    imported(far.control, file)
    assert file == exported(far.control, history=True)


@pytest.mark.check
def test_an_export_and_import_in_the_middle_of_thirteen_months_changes_no_byte(here: Side, far: Side) -> None:
    """One sandbox lives on where it is, the other one is carried elsewhere on the way."""

    def month(side: Side) -> None:
        assert 200 == side.control.post("/clock/advance", json={"days": 30}).status_code
        sample = here.control.get("/credentials").json()["sample"]
        order = created(side.api.post("/v2/orders/pix", json=order_body(sample["projectId"], sample["planId"])))
        assert 200 == side.control.post(f"/orders/{order['id']}/pay").status_code

    for _ in range(6):
        month(here)
    imported(far.control, exported(here.control))
    for _ in range(7):
        month(here)
        month(far)
    assert here.answers() == far.answers()
    assert exported(here.control) == exported(far.control)
    assert far.control.get("/invariants").json()["ok"]


def test_seeded_keys_are_derived_anew_and_made_keys_serve_under_the_prefix(here: Side, there: Side) -> None:
    made = created(here.api.post("/api-keys", json={"name": "k", "scopes": ["customers:read"]}))["api_key"]
    own = {side.name: side.control.get("/credentials").json()["private_key"] for side in (here, there)}
    imported(there.control, exported(here.control))
    assert own[there.name] == there.control.get("/credentials").json()["private_key"]

    def status(side: Side, key: str, *, bare: bool = False) -> int:
        url = (side.url.rpartition("/s/")[0] if bare else side.url) + "/v2/customers"
        return httpx2.get(url, headers={"Authorization": f"Bearer {key}"}, verify=NO_TLS).status_code

    assert (200, 401) == (status(there, own[there.name]), status(there, own[here.name]))
    assert (200, 200) == (status(there, made["private_key"]), status(here, made["private_key"]))
    here.api.delete(f"/api-keys/{made['id']}")
    assert 401 == status(here, made["private_key"], bare=True)  # bare it finds the one that made it


@pytest.mark.parametrize("email", ["nova@example.com", "succeed_with_delay@example.com"])
def test_a_retry_is_replayed_where_the_sandbox_was_carried(here: Side, there: Side, email: str) -> None:
    sample = here.control.get("/credentials").json()["sample"]
    body, key = order_body(sample["projectId"], sample["planId"]), {"Idempotency-Key": "once"}
    body["customer"]["email"] = email
    first = here.api.post("/v2/orders/pix", json=body, headers=key)
    imported(there.control, exported(here.control))
    again = there.api.post("/v2/orders/pix", json=body, headers=key)
    assert ("true", first.content) == (again.headers["idempotent-replayed"], again.content)
    assert first.headers.get("x-sandbox-simulated") == again.headers.get("x-sandbox-simulated")


@pytest.mark.promise("file-without-secrets")
def test_a_file_without_secrets_has_none_and_is_given_new_ones(here: Side, there: Side, receiver: Receiver) -> None:
    headers = [{"name": "X-Token", "value": "a-secret-of-the-receivers"}]
    body = {"url": receiver.url, "events": ["*"], "headers": headers}
    hook = created(here.api.post("/v2/webhooks", json=body))["webhook"]
    assert 200 == here.api.post(f"/v2/webhooks/{hook['id']}/test").status_code
    made = created(here.api.post("/api-keys", json={"name": "k", "scopes": ["customers:read"]}))
    key = made["api_key"]["private_key"]
    own = here.control.get("/credentials").json()["private_key"]
    with_secrets, without = (gzip.decompress(exported(here.control, secrets=told)).decode() for told in (True, False))
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
    created(here.api.post("/v2/orders/pix", json=order, headers={"Idempotency-Key": "told-to-nobody"}))
    assert b"told-to-nobody" in gzip.decompress(exported(here.control, history=True))
    assert b"told-to-nobody" not in gzip.decompress(exported(here.control, secrets=False, history=True))
    assert '"reply"' not in without
    imported(there.control, exported(here.control, secrets=False, history=True))
    receiver.requests.clear()
    assert 200 == there.api.post(f"/v2/webhooks/{hook['id']}/test").status_code
    (request,) = receiver.requests
    stamp, signed = int(request.headers["webhook-timestamp"]), request.headers["webhook-signature"]
    assert sign(hook["signing_key"], request.headers["webhook-id"], stamp, request.body) != signed
    used = httpx2.get(f"{there.url}/v2/customers", headers={"Authorization": f"Bearer {key}"}, verify=NO_TLS)
    assert 401 == used.status_code
    assert 201 == there.api.post("/v2/customers", json=customer_body()).status_code


@pytest.mark.promise("file-without-user-names")
def test_a_file_without_secrets_names_no_user_of_an_address(here: Side, there: Side) -> None:
    """None can be registered, but a file may bring one. A query stays."""

    def named(body: Any) -> None:
        body["public"]["url"] = "https://user:pass-word@hooks.example.com/x?token=kept"

    spoilt = changed(exported(here.control), "record", named, "webhooks")
    spoilt = changed(spoilt, "record", named, "webhook_logs")
    imported(there.control, spoilt)
    whole, without = (gzip.decompress(exported(there.control, secrets=told)) for told in (True, False))
    assert (2, 0) == (whole.count(b"pass-word"), without.count(b"pass-word"))
    assert 2 == without.count(b'"https://hooks.example.com/x?token=kept"')


@pytest.mark.parametrize("history", [True, False])
def test_steps_are_carried_where_they_are_asked_for(here: Side, there: Side, *, history: bool) -> None:
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


def test_an_import_says_what_it_replaces_and_begins_a_journal(here: Side, there: Side) -> None:
    created(here.api.post("/v2/customers", json=customer_body()))
    old = created_by(there, customer_body())
    was = there.control.get(f"/sandboxes/{there.name}").json()["sandbox"]
    answer = there.control.post("/import", content=exported(here.control), headers=HEADERS)
    assert {"step": was["step"], "records": was["records"], "now": was["now"]} == answer.json()["replaced"]
    assert [] == there.control.get("/requests").json()["requests"]
    assert "step_not_kept" == there.control.post("/rewind", json={"to_request": old}).json()["code"]


@pytest.mark.parametrize("secrets", [True, False])
def test_a_recording_puts_the_state_after_its_requests_and_their_journal(
    here: Side, there: Side, *, secrets: bool
) -> None:
    made = [created_by(here, customer_body()) for _ in range(3)]
    assert 404 == here.api.get("/v2/customers/00000000-0000-4000-8000-000000000000").status_code
    key = created(here.api.post("/api-keys", json={"name": "k", "scopes": ["orders:read"]}))["api_key"]
    created_by(there, customer_body())
    file = exported(here.control, requests=True, history=True, secrets=secrets)
    imported(there.control, file)
    told, found = ([r for r in side.control.get("/requests").json()["requests"]] for side in (here, there))
    members = ("id", "at", "method", "path", "status", "code", "step", "operationId")
    assert [{m: r[m] for m in members} for r in told] == [
        {m: r[m] for m in members} for r in found if r["operationId"] != "importSandbox"
    ]
    whole, brought = (side.control.get(f"/requests/{made[1]}").json()["request"] for side in (here, there))
    for member in ("request", "response", "step_before", "events", "deliveries", "caller"):
        assert whole[member] == brought[member]
    if secrets:
        assert here.answers() == there.answers()
    assert 200 == there.control.post("/rewind", json={"to_request": made[1]}).status_code
    earlier = here.control.get(f"/requests/{made[1]}").json()["request"]["step_before"]
    assert 200 == here.control.post("/rewind", json={"to_step": earlier}).status_code
    if secrets:
        assert here.answers()["/v2/customers?limit=100"] == there.answers()["/v2/customers?limit=100"]
    assert key["private_key"] not in str(lines(file))


def created_by(side: Side, body: Json) -> str:
    """The id of the request that makes a customer."""
    answer = side.api.post("/v2/customers", json=body)
    created(answer)
    return answer.headers["X-Request-Id"]


def test_an_import_tells_nobody_until_it_is_resumed(
    here: Side, there: Side, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    receiver.status = 500
    hook(events=CREATED)
    event(here.api)
    drain(control)
    imported(there.control, exported(here.control))
    event(there.api)
    assert {"due": 0, "in_flight": 0, "held": 1} == drain(there.control)["deliveries"]
    assert 1 == len(receiver.requests)
    receiver.status = 200
    assert 1 == there.control.post("/webhooks/drain", json=HELD).json()["released"]
    assert drain(there.control)["complete"]
    assert 2 == len(receiver.requests)


def test_an_import_that_delivers_tells_of_what_is_new_under_ids_of_its_own(
    here: Side, there: Side, hook: Hook, receiver: Receiver
) -> None:
    hook(events=CREATED)
    imported(there.control, exported(here.control), deliver=True)
    for side in (here, there):
        event(side.api)
        assert drain(side.control)["complete"]
    ids = [request.headers["webhook-id"] for request in receiver.requests]
    assert 2 == len(set(ids))


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
    with closing(Side(live, sandbox_name)) as here, closing(Side(live, f"{sandbox_name}-2")) as there:
        body = {"url": receiver.url, "events": CREATED}
        ident = created(here.api.post("/v2/webhooks", json=body, headers={"Origin": made}))["webhook"]["id"]
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


def error_of_an_event(side: Side, webhook: str) -> str | None:
    """The error of a delivery of an event to a webhook that is due at once."""
    created(side.api.post("/v2/customers", json=customer_body()))
    assert 200 == side.control.post("/webhooks/drain", json={"held": True}).status_code
    (log, *_) = side.api.get("/v2/webhooks/logs", params={"webhookId": webhook}).json()["logs"]
    found: str | None = side.api.get(f"/v2/webhooks/logs/{log['id']}").json()["log"]["attempts"][-1]["error"]
    return found


def test_a_running_clock_runs_on_from_the_instant_of_the_file(serve: Serve, here: Side, sandbox_name: str) -> None:
    side = Side(serve(now=None), f"{sandbox_name}-run")
    try:
        found = lines(exported(here.control))
        found[1][1]["clock"]["frozen"] = False
        imported(side.control, sealed(found))
        first = side.control.get("/clock").json()
        assert not first["frozen"]
        assert "2026-11-20T14:3" in first["now"]
        assert first["now"] < side.control.get("/clock").json()["now"]
    finally:
        side.close()


def test_an_import_is_no_step_and_reset_begins_with_what_it_was_seeded_with(here: Side, there: Side) -> None:
    assert 200 == here.control.post("/reset", json={"scenario": "empty", "seed": 7}).status_code
    imported(there.control, exported(here.control))
    event(there.api)
    reset: Json = there.control.post("/reset").json()
    assert ("empty", 7) == (reset["scenario"], reset["seed"])


def test_a_merchant_who_was_made_here_is_there(here: Side, there: Side, make_customer: Maker) -> None:
    ident = "1c1d2e3f-4a5b-4c6d-8e7f-001122334455"
    created(here.control.post("/tokens", json={"merchant_id": ident}))
    imported(there.control, exported(here.control))
    token = created(there.control.post("/tokens", json={"merchant_id": ident}))["token"]
    answer = httpx2.get(f"{there.url}/v2/customers", headers={"Authorization": f"Bearer {token}"}, verify=NO_TLS)
    assert (200, []) == (answer.status_code, answer.json()["customers"])
    assert "1" == str(there.control.get(f"/sandboxes/{there.name}").json()["sandbox"]["step"] - 1)


def test_a_file_that_is_too_large_is_refused_before_it_comes(live: Live, here: Side) -> None:
    head = f"POST /s/{here.name}/_sandbox/import HTTP/1.1\r\nHost: 127.0.0.1:{live.port}\r\n"
    head += f"Content-Type: {HEADERS['Content-Type']}\r\nContent-Length: {(256 << 20) + 1}\r\n\r\n"
    with connect(live.port) as connection:
        connection.sendall(head.encode())
        refused(answer_on(connection), 413, "payload_too_large")


def test_only_a_file_is_taken(here: Side) -> None:
    answer = here.control.post("/import", json={})
    assert (415, "unsupported_media_type") == (answer.status_code, answer.json()["code"])
    answer = here.control.post("/import?deliver=perhaps", content=b"x", headers=HEADERS)
    assert (422, "validation_error") == (answer.status_code, answer.json()["code"])
    answer = here.control.get("/export?history=perhaps")
    assert (422, "validation_error") == (answer.status_code, answer.json()["code"])


@pytest.fixture
def large(live: Live, here: Side) -> Iterator[socket]:
    """A sandbox whose file takes more than fifteen megabytes, and one who asks for it and does not read."""
    assert 200 == here.control.post("/reset", json={"scenario": "empty"}).status_code
    for _ in range(40):
        noise = {f"k{part}": token_urlsafe(370) for part in range(40)}
        created(here.api.post("/v2/customers", json=customer_body(metadata=noise)))
    for number in range(19):
        created(here.control.post("/snapshots", json={"name": f"s{number}"}))
    with socket() as his:
        his.setsockopt(SOL_SOCKET, SO_RCVBUF, 4_096)
        his.connect(("127.0.0.1", live.port))
        his.sendall(f"GET /s/{here.name}/_sandbox/export HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        yield his


@pytest.mark.promise("downloads")
@pytest.mark.check
def test_a_reader_of_a_file_who_does_not_read_is_cut_off_and_holds_little(
    live: Live, here: Side, large: socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What he does not take waits on the disk; the server has a few buffers of it ready."""
    monkeypatch.setattr(answers, "PATIENCE", 0.3)
    large.settimeout(20)
    received = len(large.recv(1))  # the file is packed
    assert nothing_on_its_way(live)
    with suppress(ConnectionResetError):
        while part := large.recv(65_536):
            received += len(part)
    assert 0 < received < 8_000_000
    whole = here.control.get("/export")
    assert 9_000_000 < len(whole.content) == int(whole.headers["content-length"])
    assert 40 * 20 == [body["table"] for kind, body in lines(whole.content) if kind == "record"].count("customers")


@pytest.mark.check
def test_only_so_many_files_are_on_their_way_at_once(
    live: Live, here: Side, large: socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_files, "MOST_DOWNLOADS", 1)
    large.recv(1)
    answer = here.control.get("/export")
    assert (429, "rate_limited", "5") == (answer.status_code, answer.json()["code"], answer.headers["Retry-After"])
    large.close()
    assert nothing_on_its_way(live)
    assert 200 == here.control.get("/export").status_code


def nothing_on_its_way(live: Live) -> bool:
    """Whether the last file goes soon."""
    until = monotonic() + 10
    while live.app.server.downloads and monotonic() < until:
        sleep(0.01)
    return not live.app.server.downloads
