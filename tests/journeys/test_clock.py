"""Time: what is due happens in its order and at its instant, however far the clock
jumps at once.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta

import httpx2
import pytest

from ..conftest import Serve
from ..support.contract import document
from ..support.live import NO_TLS, Live
from ..support.make import created, make_plan
from .stage import DAY, Stage, staged
from .steps import done, refused

LISTS = (
    "orders",
    "subscriptions",
    "projects",
    "plans",
    "products",
    "customers",
    "webhooks",
    "webhooks/logs",
)


def at(text: str) -> datetime:
    """A date-time of the service."""
    return datetime.fromisoformat(text)


def history(stage: Stage, subject: str) -> list[tuple[str, datetime]]:
    """What happened to a record, and when, oldest first."""
    page = done(stage.control.get("/events", params={"resource_id": subject, "limit": 100}))
    return [(event["type"].partition(".")[2], at(event["timestamp"])) for event in page["events"]][
        ::-1
    ]


def test_jobs_are_done_in_the_order_of_their_time(stage: Stage) -> None:
    """However they were set; those that a job sets on the way take their place; each
    tells what it caused.
    """
    for magic in (
        "succeed_with_delay",
        "refund_after_payment",
        "expire_with_delay",
        "succeed_immediately",
        None,
    ):
        stage.order("pending", make_plan(stage.api, interval="day"), magic)
    unpaid = stage.subscription("active", interval="day")
    start = at(stage.now())
    fired = stage.advance(10 * DAY)
    times = [at(job["at"]) for job in fired]
    assert times == sorted(times)
    assert start <= times[0] <= times[-1] <= start + timedelta(days=10)
    jobs = {job["job"] for job in fired}
    assert {
        "order.pay",
        "order.refund",
        "order.expire",
        "subscription.renew",
        "subscription.end",
    } <= jobs
    ends = [job for job in fired if job["resource"] == unpaid["id"]]
    assert ["subscription.renew", "subscription.end", "subscription.expire"] == [
        job["job"] for job in ends
    ]
    for type_ in (type_ for job in fired for type_ in job["events"]):
        assert {"clock", "simulation"} & set(document().events[type_]["emitted_by"]), type_


# -- one jump and many


@contextmanager
def world(live: Live, name: str) -> Iterator[Stage]:
    """The same things in a sandbox of this name, made by the same requests."""
    base = f"{live.url}/s/{name}"
    jwt = done(httpx2.get(f"{base}/_sandbox/credentials", verify=NO_TLS))["jwt"]
    headers = {"Authorization": f"Bearer {jwt}"}
    with (
        httpx2.Client(base_url=base, headers=headers, timeout=300, verify=NO_TLS) as api,
        httpx2.Client(base_url=f"{base}/_sandbox", timeout=300, verify=NO_TLS) as control,
    ):
        yield Stage(api, control, "")


def furnish(stage: Stage) -> None:
    """Subscriptions of every rhythm, paid always, never and once more, ended and standing still;
    keys; open orders.
    """
    number = iter(range(100))
    project = created(
        stage.api.post("/v2/projects", json={"name": "Clube do tempo", "status": "active"})
    )
    for interval, count, trial, magic, end in (
        ("day", 1, 0, "succeed_immediately", None),
        ("day", 10, 5, None, None),
        ("week", 2, 0, "succeed_with_delay", None),
        ("week", 1, 3, "succeed_immediately", "cancel"),
        ("month", 1, 0, "succeed_immediately", None),
        ("month", 1, 7, None, None),
        ("month", 3, 30, "succeed_with_delay", "cancel"),
        ("year", 1, 0, "succeed_immediately", None),
    ):
        body = {
            "projectId": project["data"]["project"]["id"],
            "name": f"Plano {next(number)}",
            "amount": 10,
        }
        body |= {"interval": interval, "interval_count": count, "trial_period_days": trial}
        plan = created(stage.api.post("/v2/plans", json=body))["plan"]
        buyer = {
            "name": "Ana",
            "email": f"{magic or 'ana'}@example.com",
            "document": f"P{next(number):06d}",
        }
        sent = {
            "projectId": plan["projectId"],
            "planId": plan["id"],
            "totalAmount": 10,
            "customer": buyer,
        }
        sent |= {"items": [{"description": "Plano", "quantity": 1, "amount": 10}]}
        order = created(stage.api.post("/v2/orders/pix", json=sent))
        stage.drive("orders", order["id"], "pay")
        if end == "cancel":
            held = done(stage.control.get(f"/orders/{order['id']}"))["subscriptionId"]
            stage.drive("subscriptions", held, "cancel", at_period_end=True)
        created(
            stage.api.post(
                "/v2/orders/pix", json=sent | {"customer": buyer | {"email": "ana@example.com"}}
            )
        )
    key = {"name": "Chave", "scopes": ["orders:read"], "expires_at": "2027-03-01T12:00:00Z"}
    created(stage.api.post("/api-keys", json=key))


def everything(stage: Stage) -> dict[str, list[bytes]]:
    """Every page of every list and of the events, as answered; but for public keys, which each fork
    has of its own.
    """
    found = {name: pages(stage.api, f"/v2/{name}") for name in LISTS}
    found["api_keys"] = pages(stage.api, "/api-keys")
    found["events"] = pages(stage.control, "/events")
    return {
        name: [re.sub(rb'"public_key":"\w+"', b"", page) for page in whole]
        for name, whole in found.items()
    }


def pages(client: httpx2.Client, path: str) -> list[bytes]:
    """A whole list."""
    answers: list[bytes] = []
    more = True
    while more:
        answer = client.get(path, params={"page": len(answers) + 1, "limit": 100})
        body = done(answer)
        answers.append(answer.content)
        more = body.get("data", body)["pagination"]["has_next"]
    return answers


@pytest.mark.night
@pytest.mark.check
def test_thirteen_months_at_once_are_the_same_as_395_days_one_by_one(live: Live) -> None:
    """Byte for byte in all lists and the whole event log: in two forks of one world, and in that
    world itself.
    """
    ways = {"time": 5, "time-at-once": 1, "time-by-days": 395}
    with ExitStack() as stack:
        for name in ways:
            stack.callback(live.forget, name)
        stages = {"time": stack.enter_context(world(live, "time"))}
        furnish(stages["time"])
        for name in [*ways][1:]:
            created(stages["time"].control.post("/sandboxes/time/fork", json={"name": name}))
            stages[name] = stack.enter_context(world(live, name))
        for name, steps in ways.items():
            for _ in range(steps):
                stages[name].advance(395 * DAY / steps)
        parent, at_once, day_by_day = (everything(stage) for stage in stages.values())
        assert 1 == len({stage.now() for stage in stages.values()})
    assert len(at_once["events"]) > 5
    for name in at_once:
        assert at_once[name] == day_by_day[name], name
        assert at_once[name] == parent[name], name


def test_autopay_pays_every_order_so_long_after_it_was_made(serve: Serve, sink: str) -> None:
    """Renewals too: a subscription lives on by itself. A magic e-mail keeps its own will."""
    with staged(serve(autopay=90), "auto", sink) as stage:
        order = stage.order("pending", make_plan(stage.api, interval="week"))
        stubborn = stage.order("pending", None, "fill_never")
        stage.advance(89.999)
        assert stage.get_order(order["id"])["status"] == "pending"
        stage.advance(0.001)
        assert stage.get_order(order["id"])["status"] == "paid"
        stage.advance(70 * DAY)
        held = stage.subscription_of(order["id"])
        assert ("active", 10) == (held["status"], held["cycle"])
        assert stage.get_order(stubborn["id"])["status"] == "expired"


def test_the_clock_goes_forward_only_and_not_too_far(stage: Stage) -> None:
    for path, send in (("/clock/advance", stage.control.post), ("/clock", stage.control.patch)):
        refused(send(path, json={"to": stage.after(-1)}), 409, "clock_moves_forward_only")
        refused(send(path, json={"to": stage.after(3651 * DAY)}), 409, "clock_too_far")
