"""Record and replay: what was asked of a sandbox is asked again elsewhere, and every answer is the same."""

import gzip
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import httpx2
import pytest

from stub_server.faults.fault_rules import LONGEST_DELAY
from stub_server.kernel.clock import LATEST_START

from ..support.files import changed, exported, lines, sealed
from ..support.live import NO_TLS, Live
from ..support.make import Json, Maker, created, order_body
from ..support.receiver import Receiver
from ..support.recordings import PATIENCE, Replayed, Session, recorded
from ..support.refusal import says
from .hooks import arrived, clients, drain

pytestmark = pytest.mark.check

REQUESTS = 500
DELAY = "x-sandbox-delay"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a recording goes."""
    return tmp_path / "bug.stub"


def test_a_session_of_five_hundred_requests_replays_byte_for_byte(
    api: httpx2.Client, control: httpx2.Client, receiver: Receiver, live: Live, file: Path
) -> None:
    """Clock jumps, forks, rewinds, keys, refusals and retries under a key, among deliveries to a receiver.

    What the receiver had a part in is taken from the recording, and not compared.
    """
    session = Session(api, control, receiver.url, 14)
    session.run(REQUESTS)
    for name in session.forks:
        live.forget(name)
    assert {200, 201, 400, 401, 403, 404, 409, 503} <= session.statuses
    assert receiver.requests
    replayed = Replayed(recorded(control, file), afresh=True)
    assert (0, True) == (replayed.code, replayed.told["ok"]), replayed.told["diff"]
    assert {"credentials", "other_machines", "other_sandboxes"} == {*replayed.told["aside_by_reason"]}
    assert REQUESTS <= replayed.told["requests"] == replayed.told["same"] + replayed.told["aside"]
    assert replayed.told["aside"] < REQUESTS // 5


def test_a_changed_answer_is_found_and_shown(control: httpx2.Client, make_customer: Maker, file: Path) -> None:
    make_customer(name="Rui Prado")

    def spoil(request: dict[str, str]) -> None:
        request["answer"] = request["answer"].replace("Rui Prado", "Rui Preto")

    file.write_bytes(changed(recorded(control, file).read_bytes(), "request", spoil))
    replayed = Replayed(file)
    assert (1, "POST", "/v2/customers") == (
        replayed.code,
        replayed.told["request"]["method"],
        replayed.told["request"]["path"],
    )
    assert '-    "name": "Rui Preto",' in replayed.told["diff"]
    assert '+    "name": "Rui Prado",' in replayed.told["diff"]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda file: file[:-20], "The file is damaged: it is truncated."),
        (lambda file: gzip.compress(b'{"hello": 1}\n'), "its first line does not say so"),
        (lambda file: b"PK", "it is not packed with gzip"),
        (lambda file: changed(file, "request", lambda line: line.pop("caller")), "The file is damaged: request"),
        (lambda file: changed(file, "request", lambda line: line.update(body="→")), "The file is damaged: request"),
        (lambda file: changed(file, "header", lambda line: line.update(version=9)), "in format 9"),
        (lambda file: changed(file, "request", lambda line: line.update(wall=LATEST_START)), "request.wall: "),
        (
            lambda file: changed(file, "recording", lambda line: line["behaviour"].update(base_url="http://[")),
            "recording.behaviour.base_url: ",
        ),
        (lambda file: changed(file, "request", lambda line: line.update(at=LATEST_START + 1)), "request.at: "),
    ],
)
def test_a_file_that_is_damaged_or_foreign_is_refused(
    spoil: Callable[[bytes], bytes], reason: str, control: httpx2.Client, make_customer: Maker, file: Path
) -> None:
    make_customer()
    file.write_bytes(spoil(recorded(control, file).read_bytes()))
    replayed = Replayed(file)
    assert (2, {}) == (replayed.code, replayed.told)
    assert reason in replayed.error


def test_a_sandbox_without_requests_is_no_recording(control: httpx2.Client, file: Path) -> None:
    file.write_bytes(exported(control))
    replayed = Replayed(file)
    assert 2 == replayed.code
    assert says(replayed.error, "stub-server import")


@pytest.mark.promise("no-credential-in-recording")
@pytest.mark.parametrize("secrets", [True, False])
def test_no_secret_stands_in_the_requests(
    secrets: bool, api: httpx2.Client, control: httpx2.Client, credentials: dict[str, str], file: Path
) -> None:
    """Nor in what a receiver had a part in; without secrets none stands in the state either, and it replays."""
    made = api.post("/api-keys", json={"name": "Chave", "scopes": ["orders:read"]}).json()["api_key"]["private_key"]
    for key in (made, credentials["private_key"]):
        assert 200 == api.get("/v2/orders", headers={"Authorization": f"Bearer {key}"}).status_code
    hook = api.post("/v2/webhooks", json={"url": "https://shop.example/hook", "events": ["*"]}).json()["webhook"]
    control.post("/tokens", json={})
    data = recorded(control, file, secrets=secrets).read_bytes()
    asked = str([body for kind, body in lines(data) if kind == "request"])
    for secret in (made, credentials["private_key"], credentials["jwt"], hook["signing_key"]):
        assert secret not in asked
        assert secrets or secret.removeprefix("whsec_").encode() not in gzip.decompress(data)
    replayed = Replayed(file)
    assert (0, 5) == (replayed.code, replayed.told["same"]), replayed.told


def test_it_begins_where_the_steps_reach_and_after_a_reset(serve: Callable[..., Live], file: Path) -> None:
    """Older requests are counted; where no state before one is kept there is nothing to record."""
    with clients(serve(history=3)) as (api, control):
        for number in range(6):
            assert 201 == api.post("/v2/projects", json={"name": f"Projeto {number}"}).status_code
        (about,) = [body for kind, body in lines(recorded(control, file).read_bytes()) if kind == "recording"]
        assert (3, 4) == (about["recorded"], about["left_out"])
        replayed = Replayed(file)
        assert (0, 3) == (replayed.code, replayed.told["same"]), replayed.told
        assert 200 == control.post("/reset").status_code
        (about,) = [body for kind, body in lines(recorded(control, file).read_bytes()) if kind == "recording"]
        assert (0, 0) == (about["recorded"], about["left_out"])


def test_what_was_secret_is_regroup_wherever_an_answer_repeats_it(
    api: httpx2.Client, control: httpx2.Client, credentials: Json, file: Path
) -> None:
    """An answer of the control surface shows what was sent under a secret's name; the file has not what was sent."""
    sample = credentials["sample"]
    body = order_body(sample["projectId"], sample["planId"], metadata={"token": "abc", "note": "kept"})
    order = created(api.post("/v2/orders/pix", json=body))["id"]
    shown = control.get(f"/orders/{order}").json()
    assert {"token": "abc", "note": "kept"} == shown["metadata"]
    assert 200 == control.post(f"/orders/{order}/cancel").status_code
    key = {"Authorization": f"Bearer {credentials['private_key']}"}
    assert 403 == api.post("/api-keys", json={"name": "k", "scopes": ["orders:read"]}, headers=key).status_code
    data = recorded(control, file).read_bytes()
    replayed = Replayed(file)
    assert (0, 3) == (replayed.code, replayed.told["same"]), replayed.told["diff"]

    def spoil(request: Json) -> None:
        request["answer"] = request["answer"].replace('"note":"kept"', '"note":"lost"')

    found = lines(data)
    spoil(next(line for kind, line in found if kind == "request" and line["operation"] == "cancelOrder"))
    file.write_bytes(sealed(found))
    replayed = Replayed(file)
    assert (1, 2) == (replayed.code, replayed.told["same"])
    assert '-    "note": "lost"' in replayed.told["diff"]
    assert '"token": "[redacted]"' in replayed.told["diff"]
    assert "abc" not in replayed.told["diff"]


def test_it_begins_after_a_request_whose_body_was_left_out(
    api: httpx2.Client, control: httpx2.Client, make_customer: Maker, credentials: dict[str, str], file: Path
) -> None:
    """One that changed something: nobody can send it again. One that was refused is left aside alone."""
    hiding = {"metadata": {"key": credentials["private_key"].replace("_", "%5F")}}
    make_customer(**hiding)
    make_customer()
    assert 422 == api.post("/v2/customers", json=hiding).status_code
    assert 200 == api.get("/v2/customers").status_code
    (about,) = [body for kind, body in lines(recorded(control, file).read_bytes()) if kind == "recording"]
    assert (2, 2) == (about["recorded"], about["left_out"])
    replayed = Replayed(file)
    assert (0, 2) == (replayed.code, replayed.told["same"]), replayed.told


@pytest.mark.parametrize(("settings", "said"), [({"history": 0}, "larger --history"), ({"journal": 0}, "--journal 0")])
def test_what_cannot_be_recorded_is_refused_in_words(
    settings: dict[str, int], said: str, serve: Callable[..., Live]
) -> None:
    with clients(serve(**settings)) as (api, control):
        assert 201 == api.post("/v2/projects", json={"name": "Projeto"}).status_code
        refused = control.get("/export", params={"requests": "true"})
        assert (409, "step_not_kept") == (refused.status_code, refused.json()["code"])
        assert said in refused.json()["message"]
        assert [("requests", "query")] == [(wrong["field"], wrong["in"]) for wrong in refused.json()["details"]]


def test_answers_that_fault_rules_made_are_left_aside(api: httpx2.Client, control: httpx2.Client, file: Path) -> None:
    assert 201 == control.post("/faults", json={"then": {"status": 503}}).status_code
    assert 503 == api.get("/v2/orders").status_code
    assert 1 == control.patch("/faults/fault_1", json={"enabled": False}).json()["fault"]["hits"]
    assert 204 == control.delete("/requests").status_code
    assert "fault_2" == control.post("/faults", json={"preset": "outage"}).json()["fault"]["id"]
    assert 503 == api.get("/v2/orders").status_code
    assert 200 == control.patch("/faults/fault_1", json={"enabled": True}).status_code
    assert 204 == control.delete("/faults/fault_1").status_code
    assert 204 == control.delete("/faults").status_code
    assert 200 == api.get("/v2/orders").status_code
    replayed = Replayed(recorded(control, file))
    assert (0, 2, 5) == (replayed.code, replayed.told["same"], replayed.told["aside"]), replayed.told["diff"]


def test_what_rules_do_to_deliveries_is_taken_from_the_recording(
    api: httpx2.Client, control: httpx2.Client, make_customer: Maker, file: Path
) -> None:
    """To those of reserved names, which the world itself answers."""
    hook = created(api.post("/v2/webhooks", json={"url": "https://shop.example/hook", "events": ["customer.created"]}))
    rule = created(control.post("/faults", json={"match": {"event": "customer.*"}, "then": {"webhook_drop": True}}))
    make_customer()
    assert 200 == control.post("/clock/advance", json={"seconds": 1}).status_code
    assert 200 == control.patch(f"/faults/{rule['fault']['id']}", json={"enabled": False}).status_code
    assert 200 == control.post("/clock/advance", json={"hours": 1}).status_code
    (log,) = api.get("/v2/webhooks/logs", params={"webhookId": hook["webhook"]["id"]}).json()["logs"]
    attempts = api.get(f"/v2/webhooks/logs/{log['id']}").json()["log"]["attempts"]
    assert ["fault:fault_1", None] == [attempt.get("simulated") for attempt in attempts][:2]
    replayed = Replayed(recorded(control, file))
    assert (0, 6, 2) == (replayed.code, replayed.told["same"], replayed.told["aside"]), replayed.told["diff"]


def test_what_waits_for_receivers_is_left_aside(
    api: httpx2.Client, control: httpx2.Client, receiver: Receiver, make_customer: Maker, file: Path
) -> None:
    """A rewind undoes the first attempt, and the delivery is due once more: the replay sends nothing."""
    created(api.post("/v2/webhooks", json={"url": receiver.url, "events": ["customer.created"]}))
    make_customer()
    arrived(receiver, 1)
    assert drain(control)["complete"]
    assert 200 == control.post("/rewind", json={"to_step": 2}).status_code
    until = monotonic() + PATIENCE
    while control.get("/health").json()["deliveries"] != {"due": 0, "in_flight": 0, "held": 1}:
        assert monotonic() < until
    assert 1 == control.post("/webhooks/drain", json={"held": True}).json()["released"]
    arrived(receiver, 2)
    assert drain(control)["complete"]
    replayed = Replayed(recorded(control, file))
    assert (0, 3, 3) == (replayed.code, replayed.told["same"], replayed.told["aside"]), replayed.told["diff"]


def test_a_refusal_that_a_header_asks_for_is_compared_and_none_of_the_rate_limit(
    api: httpx2.Client, control: httpx2.Client, file: Path
) -> None:
    assert 429 == api.get("/v2/orders", headers={"Prefer": "code=429"}).status_code
    replayed = Replayed(recorded(control, file))
    assert (0, 1, 0) == (replayed.code, replayed.told["same"], replayed.told["aside"]), replayed.told["diff"]


def test_a_rewind_to_before_a_request_that_changed_nothing_is_replayed(
    api: httpx2.Client, control: httpx2.Client, make_customer: Maker, file: Path
) -> None:
    """No step names such a request: its number is in the journal alone."""
    make_customer()
    harmless = [api.get("/v2/customers"), api.post("/v2/customers", json={})]
    created(control.post("/faults", json={"preset": "outage"}))
    harmless.append(api.get("/v2/customers"))
    assert 204 == control.delete("/faults").status_code
    make_customer()
    for answer in harmless:
        assert 200 == control.post("/rewind", json={"to_request": answer.headers["x-request-id"]}).status_code
    replayed = Replayed(recorded(control, file))
    assert (0, 7, 3) == (replayed.code, replayed.told["same"], replayed.told["aside"]), replayed.told["diff"]


def test_nobody_waits_for_a_delay_that_a_request_asked_for(
    api: httpx2.Client, control: httpx2.Client, file: Path
) -> None:
    """Its answer still tells of it. The longest delay, so often that the replay would not end within its patience."""
    assert 200 == api.get("/v2/orders", headers={"X-Sandbox-Delay": "1"}).status_code
    found = lines(recorded(control, file).read_bytes())
    place, (_, request) = next((n, line) for n, line in enumerate(found) if line[0] == "request")
    assert ["x-sandbox-simulated", "delay"] in request["answer_headers"]
    late = request | {"headers": [*(h for h in request["headers"] if h[0] != DELAY), [DELAY, str(LONGEST_DELAY)]]}
    again = PATIENCE * 1_000 // LONGEST_DELAY + 1
    later = [("request", late | {"id": f"req_{number:024x}"}) for number in range(again)]
    file.write_bytes(sealed([*found[:place], *later, *found[place + 1 :]]))
    replayed = Replayed(file)
    assert (0, again) == (replayed.code, replayed.told.get("same")), (replayed.error, replayed.told)


@pytest.mark.promise("recording-opens-no-file")
def test_which_scenario_file_is_read_says_whoever_replays(
    serve: Callable[..., Live], file: Path, tmp_path: Path
) -> None:
    """A recording names none that is opened: it comes from somebody else."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("merchant: { name: Loja, city: Recife }\n", encoding="utf-8")
    with clients(serve(scenario=str(mine))) as (api, control):
        assert 201 == api.post("/v2/projects", json={"name": "Projeto"}).status_code
        made = control.post("/sandboxes", json={"name": "beside"})
        assert (201, str(mine)) == (made.status_code, made.json()["sandbox"]["scenario"])
        data = recorded(control, file).read_bytes()
    moved = mine.rename(tmp_path / "moved")
    replayed = Replayed(file, "--scenario", str(moved))
    assert (0, 2) == (replayed.code, replayed.told.get("same")), (replayed.error, replayed.told)
    for scenario in (str(moved), "/etc/passwd"):

        def name(about: Json, scenario: str = scenario) -> None:
            about["behaviour"]["scenario"] = scenario

        file.write_bytes(changed(data, "recording", name))
        replayed = Replayed(file)
        assert 2 == replayed.code
        assert says(replayed.error, "--scenario")
    file.write_bytes(changed(data, "recording", lambda about: about["behaviour"].update(scenario="empty")))
    assert says(Replayed(file, "--scenario", str(moved)).error, "empty", "--scenario")


def test_a_running_clock_shows_what_it_showed(serve: Callable[..., Live], file: Path) -> None:
    with clients(serve(now=None, scenario="empty")) as (api, control):
        for number in range(5):
            assert 201 == api.post("/v2/projects", json={"name": f"Projeto {number}"}).status_code
            assert 200 == control.post("/clock/advance", json={"days": 1}).status_code
        assert 200 == control.patch("/clock", json={"frozen": True}).status_code
        assert 200 == control.patch("/clock", json={"frozen": False}).status_code
        assert 200 == api.get("/v2/projects").status_code
        replayed = Replayed(recorded(control, file))
        assert (0, 14) == (replayed.code, replayed.told["same"]), replayed.told


def test_a_server_with_an_admin_key_is_replayed_without_it(serve: Callable[..., Live], file: Path) -> None:
    """Its secret is random too: keys that follow from it are others, and are set aside."""
    server = serve(host="192.0.2.1", admin_key="open sesame")
    with clients(server, {"X-Sandbox-Admin-Key": "open sesame"}) as (api, control):
        made = control.post("/sandboxes", json={"name": "alice"})
        assert 201 == made.status_code, made.text
        token = control.post("/tokens", json={}, headers={"X-Sandbox": "alice"}).json()["token"]
        bearer = {"Authorization": f"Bearer {token}"}
        key = api.post("/api-keys", json={"name": "Chave", "scopes": ["orders:read"]}, headers=bearer)
        private_key = key.json()["api_key"]["private_key"]
        assert 200 == api.get("/v2/orders", headers={"Authorization": f"Bearer {private_key}"}).status_code
        wrong = {"X-Sandbox": "alice", "X-Sandbox-Admin-Key": "open barley"}
        assert 403 == control.patch("/clock", json={"frozen": True}, headers=wrong).status_code
        recording = control.get("/export", params={"requests": "true"}, headers={"X-Sandbox": "alice"})
        assert 200 == recording.status_code, recording.text
        assert b"open" not in b"".join(str(line).encode() for line in lines(recording.content) if line[0] == "request")
        file.write_bytes(recording.content)
        replayed = Replayed(file)
        assert (0, 4) == (replayed.code, replayed.told.get("same")), (replayed.error, replayed.told)


def test_a_recording_begins_after_the_sandbox_went_back_to_what_was_before_it(
    serve: Callable[..., Live], file: Path
) -> None:
    """To a snapshot or a request that nobody who replays has. What it took itself is restored again."""
    with clients(serve(scenario="empty", seed=31)) as (api, control):
        created(control.post("/snapshots", json={"name": "clean"}))
        created(api.post("/v2/projects", json={"name": "Antes"}))
        assert 204 == control.delete("/requests").status_code
        created(api.post("/v2/projects", json={"name": "Primeiro"}))
        assert 200 == control.post("/snapshots/clean/restore").status_code
        created(api.post("/v2/projects", json={"name": "Segundo"}))
        created(control.post("/snapshots", json={"name": "clean"}))
        created(api.post("/v2/projects", json={"name": "Terceiro"}))
        assert 200 == control.post("/snapshots/clean/restore").status_code
        replayed = Replayed(recorded(control, file))
        assert (0, 4, 4) == (replayed.code, replayed.told["requests"], replayed.told["same"]), replayed.told["diff"]
        gone = api.get("/v2/projects").headers["x-request-id"]
        assert 200 == control.post("/rewind", json={"to_request": gone}).status_code
        assert 6 == Replayed(recorded(control, file)).told["same"]
        assert 204 == control.delete("/requests").status_code
        assert 204 == control.delete("/snapshots/clean").status_code


def test_what_was_asked_of_others_and_of_earlier_snapshots_is_left_aside(
    serve: Callable[..., Live], file: Path
) -> None:
    with clients(serve(scenario="empty", seed=31)) as (api, control):
        created(control.post("/snapshots", json={"name": "before"}))
        created(control.post("/sandboxes", json={"name": "beside"}))
        assert 204 == control.delete("/requests").status_code
        created(api.post("/v2/projects", json={"name": "Primeiro"}))
        assert 204 == control.delete("/snapshots/before").status_code
        assert 409 == control.post("/sandboxes", json={"name": "Beside"}).status_code
        created(control.post("/sandboxes/beside/fork", json={"name": "twin"}))
        for name in ("beside", "twin"):
            assert 204 == control.delete(f"/sandboxes/{name}").status_code
        assert 404 == control.delete("/snapshots/before").status_code
        created(control.post("/sandboxes", json={"name": "own"}))
        assert 409 == control.post("/sandboxes/default/fork", json={"name": "own"}).status_code
        assert 204 == control.delete("/sandboxes/own").status_code
        replayed = Replayed(recorded(control, file))
    assert (0, 3) == (replayed.code, replayed.told["same"]), replayed.told["diff"]
    counts = {name: found["count"] for name, found in replayed.told["aside_by_reason"].items()}
    assert {"earlier_snapshots": 1, "other_sandboxes": 7} == counts


@pytest.mark.parametrize(
    ("operation", "path", "body", "told"),
    [
        ("restoreSnapshot", "/_sandbox/snapshots/cl%65an/restore", "", "goes back to the snapshot clean from before"),
        ("rewindSandbox", "/_sandbox/rewind", '{"to_request": "req_0"}', "goes back to a request from before"),
    ],
)
def test_a_recording_that_goes_back_beyond_itself_is_refused_at_once(
    api: httpx2.Client, control: httpx2.Client, file: Path, operation: str, path: str, body: str, told: str
) -> None:
    """A file of an earlier version: it was a difference at that request, whose answer was 404."""
    assert 200 == api.get("/v2/projects").status_code
    back = {"operation": operation, "path": path, "body": body, "status": 200, "answer": "{}"}
    file.write_bytes(changed(recorded(control, file).read_bytes(), "request", lambda request: request.update(back)))
    replayed = Replayed(file)
    assert (2, {}) == (replayed.code, replayed.told)
    assert told in replayed.error


def test_where_nothing_came_after_going_back_nothing_is_recorded(serve: Callable[..., Live]) -> None:
    with clients(serve(scenario="empty", seed=31)) as (_, control):
        created(control.post("/snapshots", json={"name": "clean"}))
        assert 204 == control.delete("/requests").status_code
        assert 200 == control.post("/snapshots/clean/restore").status_code
        answer = control.get("/export", params={"requests": "true"})
    assert (409, "step_not_kept") == (answer.status_code, answer.json()["code"])


@pytest.mark.parametrize("admin_key", [None, "a-long-admin-key"])
def test_a_recording_begins_after_a_rotation(serve: Callable[..., Live], file: Path, admin_key: str | None) -> None:
    """Old credentials are refused in it and new ones are not, also after what goes back beyond the rotation."""
    server = serve(admin_key=admin_key)
    admin = {} if admin_key is None else {"X-Sandbox-Admin-Key": admin_key}
    with httpx2.Client(base_url=server.url, headers=admin, timeout=PATIENCE, verify=NO_TLS) as client:
        before = client.get("/_sandbox/credentials").json()
        client.get("/_sandbox/steps")

        def ask(credential: str) -> int:
            bearer = {"Authorization": f"Bearer {credential}"}
            return client.get("/v2/customers?limit=1", headers=bearer).status_code

        assert [200, 200] == [ask(before[name]) for name in ("jwt", "private_key")]
        after = client.post("/_sandbox/sandboxes/default/rotate").json()["sandbox"]["credentials"]
        for path, body in (("/_sandbox/steps", None), ("/_sandbox/rewind", {"to_step": 0})):
            assert [401, 401, 200, 200] == [
                ask(each[name]) for each in (before, after) for name in ("jwt", "private_key")
            ]
            bearer = {"Authorization": f"Bearer {after['jwt']}"}
            assert 200 == client.get("/api-keys", headers=bearer).status_code
            assert 200 == client.request("POST" if body else "GET", path, json=body).status_code
        address = client.get(f"/_sandbox/orders/{after['sample']['orderId']}").json()["pay_url"]
        assert (admin_key is not None) == ("?k=" in address)
        exported_file = client.get("/_sandbox/export?requests=true")
        assert 200 == exported_file.status_code, exported_file.text
        file.write_bytes(exported_file.content)
    replayed = Replayed(file)
    assert (0, True) == (replayed.code, replayed.told["ok"]), replayed.told["diff"]
    assert (9, 11) == (replayed.told["same"], replayed.told["requests"])
    assert ["credentials"] == [*replayed.told["aside_by_reason"]]
