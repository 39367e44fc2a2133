"""Personas at run time: a new customer who has lived a life up to now."""

import httpx2
import pytest

from ..support.contract import document as contract
from ..support.make import Json, created, done, fresh_cpf, make_plan, make_project
from ..support.worlds import FIXTURES
from .steps import UNKNOWN, refused

NAMES = sorted(path.stem for path in (FIXTURES / "personas").glob("*.yaml"))
STATES: dict[str, tuple[list[str], str]] = {
    "past_due_br": (["past_due"], "pending"),
    "brand_new": ([], ""),
    "churned": (["expired"], "expired"),
    "left_early": (["canceled"], "paid"),
    "leaving_soon": (["active"], "paid"),
    "on_trial": (["trialing"], "paid"),
    "loyal_member": (["active"], "paid"),
    "waiting_for_pix": ([], "pending"),
    "waiting_for_boleto": ([], "pending"),
    "gave_up": ([], "expired"),
    "refunded_buyer": (["canceled"], "refunded"),
    "in_dispute": (["active"], "disputed"),
    "dispute_won": (["active"], "paid"),
    "dispute_lost": (["canceled"], "refunded"),
    "company_br": (["active"], "paid"),
}
"""The states of the subscriptions of each, and of the newest order."""


def add(control: httpx2.Client, persona: str, **body: object) -> Json:
    return created(control.post("/personas", json={"persona": persona, **body}))


def test_the_contract_names_every_persona() -> None:
    assert NAMES == contract("sandbox.yaml").schema("PersonaName")["enum"]


@pytest.mark.parametrize("persona", NAMES)
def test_a_persona_is_a_new_customer_in_the_state_that_was_asked_for(
    api: httpx2.Client, control: httpx2.Client, persona: str
) -> None:
    before = done(api.get("/v2/customers"))["pagination"]["total"]
    lived = add(control, persona)
    customer = lived["customer"]
    assert customer == done(api.get(f"/v2/customers/{customer['id']}"))["customer"]
    assert before + 1 == done(api.get("/v2/customers"))["pagination"]["total"]
    found = done(
        api.get(
            "/v2/orders", params={"customerId": customer["id"], "sort": "createdAt", "limit": 100}
        )
    )
    assert lived["orders"] == found["orders"]
    held = done(
        api.get("/v2/subscriptions", params={"customerId": customer["id"], "sort": "createdAt"})
    )
    assert lived["subscriptions"] == held["subscriptions"]
    if persona in STATES:
        states, newest = STATES[persona]
        assert states == [each["status"] for each in lived["subscriptions"]]
        assert newest == (lived["orders"][-1]["status"] if lived["orders"] else "")
    assert done(control.get("/invariants"))["ok"]


def test_it_is_one_step_without_events_that_can_be_undone(
    api: httpx2.Client, control: httpx2.Client
) -> None:
    earlier = done(control.get("/steps"))["steps"]
    told = done(control.get("/events"))["pagination"]["total"]
    lived = add(control, "loyal_member")
    path = f"/v2/customers/{lived['customer']['id']}"
    (step,) = done(control.get("/steps"))["steps"][: 1 - len(earlier) or None]
    assert ([], "addPersona") == (step["events"], step["cause"]["operation"])
    assert told == done(control.get("/events"))["pagination"]["total"]
    assert 404 == api.get(path, headers={"X-Sandbox-As-Of": str(step["step"] - 1)}).status_code
    assert 200 == api.get(path, headers={"X-Sandbox-As-Of": str(step["step"])}).status_code
    done(control.post("/rewind", json={"to_step": step["step"] - 1}))
    assert 404 == api.get(path).status_code


def test_the_life_goes_on(api: httpx2.Client, control: httpx2.Client) -> None:
    """Timers that lie ahead are set: the trial ends, what is past due expires, an order that waits
    runs out.
    """
    trial, late, waiting = (
        add(control, name) for name in ("on_trial", "past_due_br", "waiting_for_pix")
    )
    (held,) = trial["subscriptions"]
    timers = done(control.get("/timers", params={"resource_id": held["id"]}))["timers"]
    assert [held["trial_end"]] == [timer["due"] for timer in timers]
    done(control.post("/clock/advance", json={"days": 8}))
    states = {}
    for lived in (trial, late):
        found = done(api.get("/v2/subscriptions", params={"customerId": lived["customer"]["id"]}))[
            "subscriptions"
        ]
        states[lived["persona"]] = found[0]["status"]
    assert {"on_trial": "active", "past_due_br": "expired"} == states
    assert "expired" == done(api.get(f"/v2/orders/{waiting['orders'][0]['id']}"))["status"]


def test_the_request_says_who_and_what(api: httpx2.Client, control: httpx2.Client) -> None:
    plan = make_plan(api, amount=12.5)
    done(control.post("/clock/advance", json={"days": 400}))
    document = fresh_cpf()
    masked = f"{document[:3]}.{document[3:6]}.{document[6:9]}-{document[9:]}"
    person = {"name": "Iara Menezes", "email": "Iara@example.com", "document": masked}
    lived = add(control, "loyal_member", customer=person, planId=plan["id"])
    shown = lived["customer"]
    assert ("Iara Menezes", "iara@example.com", document) == (
        shown["name"],
        shown["email"],
        shown["document"],
    )
    (held,) = lived["subscriptions"]
    assert (plan["id"], 11) == (held["planId"], held["cycle"])
    assert {12.5} == {order["totalAmount"] for order in lived["orders"]}
    again = control.post("/personas", json={"persona": "brand_new", "customer": person})
    refused(again, 409, "duplicate_document")


def test_the_same_request_gives_the_same_person(control: httpx2.Client) -> None:
    first = add(control, "past_due_br")
    done(control.post("/reset", json={}))
    assert first == add(control, "past_due_br")


def test_what_is_missing_is_said(api: httpx2.Client, control: httpx2.Client) -> None:
    def asked(persona: str, **body: str) -> httpx2.Response:
        return control.post("/personas", json={"persona": persona, **body})

    refused(asked("loyal_member", planId=UNKNOWN), 409, "reference_not_found")
    young = make_plan(api)
    refused(asked("loyal_member", planId=young["id"]), 409, "persona_not_possible")
    other = make_project(api)["id"]
    both = {"planId": young["id"], "projectId": other}
    refused(asked("loyal_member", **both), 409, "reference_not_found")
    refused(asked("on_trial", projectId=other), 409, "persona_not_possible")
    yearly = make_plan(api, interval="year")["id"]
    assert "monthly" in asked("past_due_br", planId=yearly).json()["message"]
    inactive = make_plan(api, status="inactive")["id"]
    refused(asked("waiting_for_pix", planId=inactive), 409, "plan_not_active")
    draft = make_project(api, status="draft")
    refused(asked("waiting_for_pix", projectId=draft["id"]), 409, "project_not_active")
    cards = make_plan(api, payment_methods=["credit_card"])["id"]
    full = make_plan(api, max_subscribers=1)["id"]
    done(control.post("/clock/advance", json={"days": 90}))
    refused(asked("waiting_for_pix", planId=cards), 409, "payment_method_not_allowed")
    add(control, "company_br", planId=full)
    refused(asked("company_br", planId=full), 409, "plan_sold_out")
