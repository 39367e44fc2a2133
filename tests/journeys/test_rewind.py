"""Going back: to a step, before a request, to an instant; and what stays as it is."""

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from stub_server.core import slices
from stub_server.core.clock import iso, parse_iso

from ..conftest import Serve
from ..support.files import exported, imported
from ..support.live import NO_TLS
from ..support.make import HELD, Json, Maker, created, customer_body, done, order_body
from ..support.receiver import Receiver
from ..support.refusal import says
from .hooks import CREATED, Hook, clients, drain, event, logs
from .past import everything, rewind, step_of
from .steps import refused


def clock_of(control: httpx2.Client) -> Json:
    """The clock, without how far it is from the wall clock, which goes on."""
    shown = done(control.get("/clock"))
    del shown["offset_seconds"]
    return shown


def test_everything_reads_as_it_did_after_the_step(
    api: httpx2.Client, control: httpx2.Client, make_customer: Maker, make_order: Maker
) -> None:
    """Records of every kind, events and the clock; and a rewind is a step that can be
    undone like another.
    """
    make_customer()
    order = make_order()
    before = everything(api, control)
    step = step_of(control)
    clock = clock_of(control)
    done(control.post(f"/orders/{order['id']}/pay"))
    done(control.post("/clock/advance", json={"days": 40}))
    key = done(control.get("/credentials"))["private_key"]
    done(api.get("/v2/customers", headers={"Authorization": f"Bearer {key}"}))  # which is noted
    make_customer()
    after = everything(api, control)
    newest = step_of(control)
    later = clock_of(control)
    assert before != after
    rewound = rewind(control, to_step=step)
    assert newest - step == rewound["undone"]
    assert (newest + 1, clock["now"]) == (rewound["sandbox"]["step"], rewound["sandbox"]["now"])
    assert before == everything(api, control)
    assert clock == clock_of(control)
    cause = done(control.get("/steps", params={"limit": 1}))["steps"][0]["cause"]
    assert ("control", "rewindSandbox") == (cause["kind"], cause["operation"])
    undone = rewind(control, to_step=newest)
    assert (1, newest + 2) == (undone["undone"], undone["sandbox"]["step"])
    assert after == everything(api, control)
    assert later == clock_of(control)
    rewind(control, to_step=0)
    rewind(control, to_step=step)
    assert before == everything(api, control)
    assert 200 == control.get("/invariants").status_code


def test_back_to_an_instant(
    api: httpx2.Client, control: httpx2.Client, make_customer: Maker
) -> None:
    """The clock shows the instant, and what was due after it is due again."""
    make_customer()
    begun = control.get("/clock").json()["now"]
    before = everything(api, control)
    done(control.post("/clock/advance", json={"hours": 2}))
    make_customer()
    middle = iso(parse_iso(begun) + 1)
    sandbox = rewind(control, to=middle)["sandbox"]
    assert middle == sandbox["now"]
    assert before == everything(api, control)
    done(control.post("/clock/advance", json={"days": 40}))
    rewind(control, to=begun)
    assert begun == control.get("/clock").json()["now"]
    jobs = []
    for _ in range(2):
        fired = done(control.post("/clock/advance", json={"hours": 25}))["fired"]
        # A simulated receiver decides by the id of an event, and ids are never those of what was
        # undone.
        jobs.append([(job["at"], job["job"]) for job in fired if job["job"] != "webhook.answer"])
        rewind(control, to=begun)
    assert jobs[0]
    assert jobs[0] == jobs[1]


def test_the_past_is_not_sent_again_and_what_is_new_is(
    api: httpx2.Client, hook: Hook, receiver: Receiver, control: httpx2.Client
) -> None:
    # so that the first event of all is among them
    done(control.post("/reset", json={"scenario": "empty"}))
    receiver.status = 500
    made = hook(events=CREATED)
    event(api)
    drain(control)
    waiting = step_of(control)
    receiver.status = 200
    done(control.post("/clock/advance", json={"days": 1}))
    assert ["delivered"] == [log["status"] for log in logs(api, webhookId=made["id"])]
    sent = len(receiver.requests)
    rewind(control, to_step=waiting)
    assert ["retrying"] == [log["status"] for log in logs(api, webhookId=made["id"])]
    done(control.post("/clock/advance", json={"days": 1}))
    assert {"due": 0, "in_flight": 0, "held": 1} == drain(control)["deliveries"]
    assert sent == len(receiver.requests)
    event(api)
    drain(control)
    ids = [request.headers["webhook-id"] for request in receiver.requests]
    assert sent + 1 == len(ids)
    assert ids[-1] not in ids[:-1]
    assert 1 == control.post("/webhooks/drain", json=HELD).json()["released"]
    assert drain(control)["complete"]
    assert ["delivered", "delivered"] == [log["status"] for log in logs(api, webhookId=made["id"])]
    assert sent + 2 == len(receiver.requests)


def test_the_reply_to_a_key_that_was_used_again_returns(
    api: httpx2.Client, control: httpx2.Client, make_plan: Maker
) -> None:
    """The first one had expired when the key was used for another order."""
    plan = make_plan()
    body = order_body(plan["projectId"], plan["id"])
    key = {"Idempotency-Key": "cart"}
    first = api.post("/v2/orders/pix", json=body, headers=key)
    step = step_of(control)
    created(control.post("/snapshots", json={"name": "first"}))
    for back in ("/rewind", {"to_step": step}), ("/snapshots/first/restore", None):
        done(control.post("/clock/advance", json={"days": 2}))
        again = api.post("/v2/orders/pix", json=body, headers=key)
        assert created(first)["id"] != created(again)["id"]
        done(control.post(back[0], json=back[1]))
        assert first.content == api.post("/v2/orders/pix", json=body, headers=key).content, back


def test_a_reply_that_is_restored_while_its_request_waits_stays_the_only_one(
    api: httpx2.Client, control: httpx2.Client, hook: Hook, receiver: Receiver
) -> None:
    """Every state can be had afterwards, and is a file that can be read."""
    path = f"/v2/webhooks/{hook()['id']}/test"
    key = {"Idempotency-Key": "test"}
    step = step_of(control)
    done(api.post(path, headers=key))
    created(control.post("/snapshots", json={"name": "replied"}))
    rewind(control, to_step=step)
    receiver.acts = lambda _: done(control.post("/snapshots/replied/restore"))
    assert "idempotent-replayed" not in api.post(path, headers=key).headers
    receiver.acts = None
    assert "idempotent-replayed" in api.post(path, headers=key).headers
    file = exported(control)
    for number in range(step_of(control) - 1, step - 1, -1):
        rewind(control, to_step=number)
    imported(control, file)


def test_faults_inboxes_and_the_journal_stay(
    api: httpx2.Client, control: httpx2.Client, make_customer: Maker
) -> None:
    created(control.post("/faults", json={"match": {"path": "/nowhere"}, "then": {"status": 503}}))
    assert 200 == control.post("/inbox/shop", json={}).status_code
    make_customer()
    rewind(control, to_step=0)
    assert 1 == done(control.get("/faults"))["pagination"]["total"]
    assert 1 == done(control.get("/inbox/shop"))["pagination"]["total"]


@pytest.mark.check
def test_a_state_that_cannot_be_had_is_refused_with_the_oldest_that_can(serve: Serve) -> None:
    with clients(serve(seed=11, history=2)) as (api, control):
        for _ in range(4):
            created(api.post("/v2/customers", json=customer_body()))
        for name, wanted, told in (
            ("to_step", 1, "step 2"),
            ("to_step", 5, 4),
            ("to", "2020-01-01T00:00:00Z", "step 2"),
            ("to", "2030-01-01T00:00:00Z", "has not come yet"),
            ("to_request", "req_nobody", "step 2"),
        ):
            answer = control.post("/rewind", json={name: wanted})
            assert {name: "step_not_kept"} == refused(answer, 409, "step_not_kept")
            assert says(answer.json()["message"], told)
        assert 4 == step_of(control)


async def _one_by_one(
    lane: slices.BackgroundWorker, work: Generator[None, None, Any], of: str
) -> Any:
    """As the lane does it, with a rest after every piece: long enough for others to
    come in each.
    """
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value
        await asyncio.sleep(0.02)


@pytest.mark.promise("rewind-delays-nobody")
@pytest.mark.check
def test_what_others_do_while_a_rewind_is_worked_out_is_undone_too(
    api: httpx2.Client, control: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reaches the state on a copy, others are served meanwhile, and in the end the
    world is that state.
    """
    for _ in range(40):
        created(api.post("/v2/customers", json=customer_body()))
    before = {
        path: body
        for path, body in everything(api, control).items()
        if path.startswith("/v2/customers")
    }
    step = step_of(control)
    for _ in range(40):
        created(api.post("/v2/customers", json=customer_body()))
    served = []
    monkeypatch.setattr(slices.BackgroundWorker, "in_slices", _one_by_one)
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(rewind, control, to_step=step)
        with httpx2.Client(
            base_url=api.base_url, headers=dict(api.headers), timeout=30, verify=NO_TLS
        ) as other:
            while not going.done():
                served.append(
                    created(other.post("/v2/customers", json=customer_body()))["customer"]["id"]
                )
        undone = going.result()["undone"]
    assert 40 < undone
    number = step_of(control)
    late = number - (step + undone + 1)  # those that came after it
    rewind(control, to_step=number - late)
    assert before == {
        p: body for p, body in everything(api, control).items() if p.startswith("/v2/customers")
    }
    rewind(control, to_step=step + undone)
    there = [api.get(f"/v2/customers/{ident}").status_code for ident in served]
    assert [200] * (undone - 40) + [404] * late == there


def test_a_sandbox_that_is_replaced_meanwhile_is_not_rewound(
    api: httpx2.Client, control: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rewind waits on its way until the import has been answered; a reset would wait for it."""
    file = exported(control)
    for _ in range(40):
        created(api.post("/v2/customers", json=customer_body()))
    step = step_of(control) - 30
    begun = threading.Event()
    over = threading.Event()
    in_slices = slices.BackgroundWorker.in_slices

    async def held(lane: slices.BackgroundWorker, work: Generator[None, None, Any], of: str) -> Any:
        if not begun.is_set():
            next(work)
            begun.set()
            while not over.is_set():
                await asyncio.sleep(0.001)
        return await in_slices(lane, work, of)

    monkeypatch.setattr(slices.BackgroundWorker, "in_slices", held)
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(control.post, "/rewind", json={"to_step": step})
        try:
            assert begun.wait(30)
            with httpx2.Client(base_url=control.base_url, timeout=30, verify=NO_TLS) as other:
                imported(other, file)
        finally:
            over.set()  # or the tests after it would wait for this rewind
        answer = going.result()
    assert {"to_step": "step_not_kept"} == refused(answer, 409, "step_not_kept")
    assert "began again" in answer.json()["message"]
    assert 0 == step_of(control)
