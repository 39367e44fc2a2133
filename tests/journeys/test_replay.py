"""Record and replay: what was asked of a sandbox is asked again elsewhere, and every
answer is the same.
"""

import asyncio
import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep

import httpx2
import pytest

from stub_server.core.clock import LATEST_START
from stub_server.domain.deliveries import Failed
from stub_server.server.sandboxes.making import Beginning
from stub_server.webhooks.sender import Sender

from ..engine.state import refolded
from ..support.files import changed, exported, lines, sealed
from ..support.live import NO_TLS, Live
from ..support.make import Json, Maker, created
from ..support.receiver import Receiver
from ..support.recordings import PATIENCE, Replayed, Session, recorded
from .hooks import arrived, clients, drain

pytestmark = pytest.mark.check


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a recording goes."""
    return tmp_path / "bug.stub"


@pytest.mark.parametrize("requests", [200, pytest.param(500, marks=pytest.mark.night)])
def test_a_session_replays_byte_for_byte(
    api: httpx2.Client,
    control: httpx2.Client,
    receiver: Receiver,
    live: Live,
    file: Path,
    requests: int,
) -> None:
    """Clock jumps, forks, rewinds, keys, refusals and retries under a key, among deliveries to a
    receiver.

    What the receiver had a part in is taken from the recording, and not compared.
    """
    session = Session(api, control, receiver.url, 14)
    session.run(requests)
    for name in session.forks:
        live.forget(name)
    assert {200, 201, 400, 401, 403, 404, 409, 503} <= session.statuses
    assert receiver.requests
    drain(control)
    world = live.app.sandboxes.find(control.base_url.path.split("/")[2])
    assert world is not None
    refolded(
        world,
        live.app.sandboxes.factory.make(
            world.name, world.origin.generation, Beginning("default", world.origin.seed)
        ),
    )
    replayed = Replayed(recorded(control, file), afresh=True)
    assert (0, True) == (replayed.code, replayed.told["ok"]), replayed.told["diffs"]
    assert {"credentials", "other_machines", "other_sandboxes"} == {
        *replayed.told["aside_by_reason"]
    }
    assert requests <= replayed.told["requests"] == replayed.told["same"] + replayed.told["aside"]
    assert replayed.told["aside"] < requests // 5


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda file: file[:-20], "The file is damaged: it is truncated."),
        (lambda file: gzip.compress(b'{"hello": 1}\n'), "its first line does not say so"),
        (lambda file: b"PK", "it is not packed with gzip"),
        (
            lambda file: changed(file, "request", lambda line: line.pop("caller")),
            "The file is damaged: request",
        ),
        (
            lambda file: changed(file, "request", lambda line: line.update(body="→")),
            "The file is damaged: request",
        ),
        (
            lambda file: changed(file, "header", lambda line: line.update(version=99)),
            "in format 99",
        ),
        (
            lambda file: changed(file, "request", lambda line: line.update(received=LATEST_START)),
            "request.received: ",
        ),
        (
            lambda file: changed(
                file, "recording", lambda line: line["behaviour"].update(base_url="http://[")
            ),
            "recording.behaviour.base_url: ",
        ),
        (
            lambda file: changed(file, "request", lambda line: line.update(at=LATEST_START + 1)),
            "request.at: ",
        ),
    ],
)
def test_a_file_that_is_damaged_or_foreign_is_refused(
    spoil: Callable[[bytes], bytes],
    reason: str,
    control: httpx2.Client,
    make_customer: Maker,
    file: Path,
) -> None:
    make_customer()
    file.write_bytes(spoil(recorded(control, file).read_bytes()))
    replayed = Replayed(file)
    assert (2, {}) == (replayed.code, replayed.told)
    assert reason in replayed.error


@pytest.mark.promise("no-credential-in-recording")
def test_no_secret_stands_in_a_recording(
    api: httpx2.Client,
    control: httpx2.Client,
    credentials: dict[str, str],
    file: Path,
) -> None:
    """Neither in the requests nor in the state nor in what a receiver had a part in."""
    made = api.post("/api-keys", json={"name": "Chave", "scopes": ["orders:read"]}).json()[
        "api_key"
    ]["private_key"]
    for key in (made, credentials["private_key"]):
        assert 200 == api.get("/v2/orders", headers={"Authorization": f"Bearer {key}"}).status_code
    hook = api.post(
        "/v2/webhooks", json={"url": "https://shop.example/hook", "events": ["*"]}
    ).json()["webhook"]
    control.post("/tokens", json={})
    data = gzip.decompress(recorded(control, file).read_bytes())
    for secret in (made, credentials["private_key"], credentials["jwt"], hook["signing_key"]):
        assert secret.removeprefix("whsec_").encode() not in data
    replayed = Replayed(file)
    assert (0, 5) == (replayed.code, replayed.told["same"]), replayed.told


def test_no_key_stands_in_a_reply_that_going_back_forgot_and_brought_back(
    api: httpx2.Client, control: httpx2.Client, file: Path
) -> None:
    """Without secrets: the reply was saved for an Idempotency-Key, and showed a key."""
    key = {"name": "Chave", "scopes": ["orders:read"]}
    answer = created(api.post("/api-keys", json=key, headers={"Idempotency-Key": "idem"}))
    step = control.get("/steps", params={"limit": 1}).json()["steps"][0]["step"]
    for number in (step - 1, step):
        assert 200 == control.post("/rewind", json={"to_step": number}).status_code
    data = recorded(control, file).read_bytes()
    assert answer["api_key"]["private_key"].encode() not in gzip.decompress(data)
    exported(control, history=True, secrets=False)


def test_what_stands_around_a_secret_is_compared(
    api: httpx2.Client, control: httpx2.Client, file: Path
) -> None:
    """In the same text too, however long it is; and the name of a member that is secret."""
    text = '{"key":"whsec_' + "a1B2" * 6 + '","amount":10}'
    assert 201 == api.post("/v2/projects", json={"name": text}).status_code
    assert (
        201 == api.post("/api-keys", json={"name": "Chave", "scopes": ["orders:read"]}).status_code
    )
    sound = recorded(control, file).read_bytes()
    assert 0 == Replayed(file).code
    told = lines(sound)
    for right, wrong in (
        (r"\"amount\":10", r"\"amount\":99"),
        (r"\"key\"", r"\"kex\""),
        ("private_key", "privateKey"),
    ):
        spoilt = [
            request
            for kind, request in told
            if kind == "request" and right in (request["answer"] or "")
        ]
        for request in spoilt:
            request["answer"] = request["answer"].replace(right, wrong)
        file.write_bytes(sealed(told))
        replayed = Replayed(file)
        assert (1, 1) == (replayed.code, len(replayed.told["diffs"])), replayed.told
        assert wrong in replayed.told["diffs"][0]["diff"]
        for request in spoilt:
            request["answer"] = request["answer"].replace(wrong, right)


@pytest.mark.parametrize(
    ("settings", "said"), [({"history": 0}, "larger --history"), ({"journal": 0}, "--journal 0")]
)
def test_what_cannot_be_recorded_is_refused_in_words(
    settings: dict[str, int], said: str, serve: Callable[..., Live]
) -> None:
    with clients(serve(**settings)) as (api, control):
        assert 201 == api.post("/v2/projects", json={"name": "Projeto"}).status_code
        refused = control.get("/export", params={"requests": "true"})
        assert (409, "step_not_kept") == (refused.status_code, refused.json()["code"])
        assert said in refused.json()["message"]
        assert [("requests", "query")] == [
            (wrong["field"], wrong["in"]) for wrong in refused.json()["details"]
        ]


def test_answers_that_fault_rules_made_are_left_aside(
    api: httpx2.Client, control: httpx2.Client, file: Path
) -> None:
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
    assert (0, 2, 5) == (
        replayed.code,
        replayed.told["same"],
        replayed.told["aside"],
    ), replayed.told["diffs"]


def test_the_deletion_of_a_snapshot_is_left_aside(control: httpx2.Client, file: Path) -> None:
    """A recording has no snapshots, be they earlier ones or of its own requests."""
    created(control.post("/snapshots", json={"name": "own"}))
    assert 204 == control.delete("/snapshots/own").status_code
    replayed = Replayed(recorded(control, file))
    assert (0, {"snapshots": 1}) == (replayed.code, replayed.told["aside_by_reason"])


def test_what_waits_for_receivers_is_left_aside(
    api: httpx2.Client, control: httpx2.Client, receiver: Receiver, make_customer: Maker, file: Path
) -> None:
    """A rewind undoes the first attempt, and the delivery is due once more: the replay
    sends nothing.
    """
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
    assert (0, 3, 3) == (
        replayed.code,
        replayed.told["same"],
        replayed.told["aside"],
    ), replayed.told["diffs"]


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
        assert (
            200
            == control.post(
                "/rewind", json={"to_request": answer.headers["x-request-id"]}
            ).status_code
        )
    replayed = Replayed(recorded(control, file))
    assert (0, 7, 3) == (
        replayed.code,
        replayed.told["same"],
        replayed.told["aside"],
    ), replayed.told["diffs"]


@pytest.mark.promise("recording-opens-no-file")
def test_a_recording_of_a_scenario_file_needs_and_opens_no_file(
    serve: Callable[..., Live], file: Path, tmp_path: Path
) -> None:
    """A recording has all records, and the file that it names is not opened: it comes from somebody
    else.
    """
    mine = tmp_path / "mine.yaml"
    mine.write_text("merchant: { name: Loja, city: Recife }\n", encoding="utf-8")
    with clients(serve(scenario=str(mine))) as (api, control):
        assert 201 == api.post("/v2/projects", json={"name": "Projeto"}).status_code
        assert str(mine) == control.get("/sandboxes").json()["sandboxes"][0]["scenario"]
        data = recorded(control, file).read_bytes()
    mine.unlink()
    os.mkfifo(mine)  # whoever opened it would wait for ever
    for scenario in (str(mine), "/etc/passwd", "empty"):

        def name(about: Json, scenario: str = scenario) -> None:
            about["behaviour"]["scenario"] = scenario

        file.write_bytes(changed(data, "recording", name))
        replayed = Replayed(file)
        assert (0, True) == (replayed.code, replayed.told["ok"]), (replayed.error, replayed.told)


def test_requests_that_overlap_on_a_running_clock_replay(
    api: httpx2.Client, control: httpx2.Client, file: Path
) -> None:
    """While a body arrives, the clock runs on and others change the sandbox: what counts is when it
    is complete.
    """
    assert 200 == control.patch("/clock", json={"frozen": False}).status_code

    def slowly(sent: bytes, others: Callable[[httpx2.Client], object]) -> Iterator[bytes]:
        yield sent[:5]
        sleep(0.02)
        with httpx2.Client(base_url=api.base_url, headers=api.headers, verify=NO_TLS) as another:
            others(another)
        yield sent[5:]

    def post(sent: bytes, others: Callable[[httpx2.Client], object]) -> int:
        as_json = {"Content-Type": "application/json"}
        return api.post("/v2/customers", content=slowly(sent, others), headers=as_json).status_code

    good = b'{"name": "Ana Lima", "email": "ana@example.com", "document": "529.982.247-25"}'
    bia = {"name": "Bia Lima", "email": "bia@example.com", "document": "111.444.777-35"}
    assert 201 == post(good, lambda another: another.get("/_sandbox/clock"))  # which no journal has
    assert 422 == post(b'{"name": 1}', lambda another: another.get("/_sandbox/clock"))
    assert 409 == post(good, lambda another: another.post("/v2/customers", json=bia))
    replayed = Replayed(recorded(control, file))
    assert (0, 5) == (replayed.code, replayed.told["same"]), replayed.told


def test_a_recording_has_no_address_called(
    control: httpx2.Client, make_customer: Maker, file: Path
) -> None:
    """Its author had a certification called otherwise, and learnt who replays."""
    make_customer()
    body = {"url": "http://receiver.invalid/", "signing_key": "whsec_" + "Zm9yZ2Vk" * 4}

    def certify(line: Json) -> None:
        line.update(path="/_sandbox/certify", body=json.dumps(body), operation=None, status=200)

    file.write_bytes(changed(recorded(control, file).read_bytes(), "request", certify))
    told = json.dumps(Replayed(file).told)
    assert "connection_failed" in told
    assert "dns" not in told


def test_a_sender_of_a_replay_asks_nobody_for_effects(receiver: Receiver) -> None:
    with pytest.raises(Failed, match="nothing is sent"):
        asyncio.run(Sender(local=True, mute=True).ask(receiver.url, PATIENCE))
