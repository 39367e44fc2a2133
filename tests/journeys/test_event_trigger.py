"""Events that are raised by hand: about a record, with changes to what they show, and nothing but
the event happens.
"""

from collections.abc import Callable

import httpx2
import pytest

from ..support.contract import document, schemas, violations
from ..support.make import Json, created, done, make_customer, make_order
from ..support.refusal import says
from .steps import refused

TYPES = tuple(document().events)
Raise = Callable[..., Json]


@pytest.fixture
def raised(control: httpx2.Client) -> Raise:
    """`raised("order.paid", resource_id=…)`: an event."""

    def trigger(type_: str, **rest: object) -> Json:
        return dict(created(control.post("/events", json={"type": type_, **rest}))["event"])

    return trigger


@pytest.mark.parametrize("type_", TYPES)
def test_every_type_can_be_raised_and_fits_its_schema(raised: Raise, type_: str) -> None:
    event = raised(type_)
    assert type_ == event["type"]
    validator = schemas().compile(document().events[type_]["schema"], request=False)
    assert [] == violations(validator, event)


def test_where_nothing_is_stored_it_is_about_the_example(
    raised: Raise, control: httpx2.Client
) -> None:
    """And it is found by the example's id."""
    done(control.post("/reset", json={"scenario": "empty"}))
    event = raised("order.paid")
    assert document().events["order.paid"]["example"]["data"] == event["data"]
    query = {"resource_id": event["data"]["order"]["id"]}
    assert [event] == done(control.get("/events", params=query))["events"]


def test_it_is_about_the_record_that_is_asked_for_and_changes_nothing(
    raised: Raise, api: httpx2.Client
) -> None:
    order = make_order(api)
    event = raised("order.paid", resource_id=order["id"].upper())
    assert order == event["data"]["order"]
    assert order == done(api.get(f"/v2/orders/{order['id']}"))


def test_overrides_change_what_it_shows_and_null_takes_away(
    raised: Raise, api: httpx2.Client
) -> None:
    customer = make_customer(api, metadata={"a": "1", "b": "2"})
    event = raised(
        "customer.updated",
        resource_id=customer["id"],
        overrides={"name": "Ana Lima", "metadata": {"a": None, "c": "3"}},
    )
    assert {**customer, "name": "Ana Lima", "metadata": {"b": "2", "c": "3"}} == event["data"][
        "customer"
    ]
    assert customer == done(api.get(f"/v2/customers/{customer['id']}"))["customer"]


@pytest.mark.parametrize("overrides", [{"email": 42}, {"unheard_of": "x"}, {"email": None}])
def test_overrides_that_break_the_payloads_schema_are_409(
    control: httpx2.Client, overrides: Json
) -> None:
    before = done(control.get("/events"))["pagination"]["total"]
    answer = control.post("/events", json={"type": "customer.updated", "overrides": overrides})
    assert {"overrides": "event_conflict"} == refused(answer, 409, "event_conflict")
    assert says(answer.json()["message"], "data.customer")
    assert before == done(control.get("/events"))["pagination"]["total"]
