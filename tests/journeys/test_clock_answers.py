"""What a move of the clock answers: how many jobs of each kind ran, and the first of each."""

from collections import Counter
from datetime import datetime, timedelta

import httpx2
import pytest

from stub_server.operations.control import sandbox_clock

from ..support.make import done, make_order, make_plan


def test_the_answer_counts_and_shows_the_first_of_each_kind(
    api: httpx2.Client, control: httpx2.Client
) -> None:
    plan = make_plan(api)
    buyers = [
        {"name": "Ana", "email": f"a{n}@example.com", "document": f"AB{n:05}"} for n in range(25)
    ]
    orders = [make_order(api, plan, customer=buyer) for buyer in buyers]
    fork = control.post("/sandboxes/" + control.base_url.path.split("/")[2] + "/fork").json()[
        "sandbox"
    ]["base_url"]
    moved = done(control.post("/clock/advance", json={"days": 2}))
    expired = [job for job in moved["fired"] if job["job"] == "order.expire"]
    assert (20, True) == (len(expired), moved["counts"]["order.expire"] >= 25)
    whole = done(
        httpx2.post(f"{fork}/_sandbox/clock/advance", params={"details": "all"}, json={"days": 2})
    )
    assert sum(whole["counts"].values()) == len(whole["fired"])
    assert whole["counts"] == moved["counts"]
    own = make_order(api, plan, customer=buyers[0])
    done(control.post("/clock/advance", json={"minutes": 1}))
    make_order(api, plan, customer=buyers[1])
    about = {"about": own["id"]}
    set_to = done(control.patch("/clock", params=about, json={"to": _after(control, days=2)}))
    assert [own["id"]] == [job["resource"] for job in set_to["fired"]]
    assert {"order.expire": 1} == set_to["counts"]
    assert "fired" not in done(control.get("/clock"))
    assert orders


def test_an_answer_with_all_jobs_shows_as_many_as_are_written_in_a_turn(
    api: httpx2.Client, control: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(api)
    for number in range(25):
        buyer = {"name": "Ana", "email": "a@example.com", "document": f"AB{number:05}"}
        make_order(api, plan, customer=buyer)
    monkeypatch.setattr(sandbox_clock, "MOST_SHOWN", 22)
    whole = done(control.post("/clock/advance", params={"details": "all"}, json={"days": 2}))
    shown = Counter(job["job"] for job in whole["fired"])
    assert whole["counts"]["order.expire"] >= 25 > shown["order.expire"] >= 20
    assert whole["counts"].keys() == shown.keys()


def _after(control: httpx2.Client, days: int) -> str:

    now = datetime.fromisoformat(done(control.get("/clock"))["now"])
    return (now + timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_what_concerns_a_customer_is_shown_with_subscriptions_and_orders(
    api: httpx2.Client, control: httpx2.Client
) -> None:
    lived = control.post("/personas", json={"persona": "past_due_br"}).json()
    query = {"about": lived["customer"]["id"]}
    moved = done(control.post("/clock/advance", params=query, json={"days": 10}))
    concerned = {lived["subscriptions"][0]["id"], *(order["id"] for order in lived["orders"])}
    assert {job["resource"] for job in moved["fired"]} <= concerned
    assert moved["counts"]["subscription.expire"] == 1
