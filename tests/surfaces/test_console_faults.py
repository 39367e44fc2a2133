"""The page of fault rules: ready ones, own ones, what they did, and that they end."""

import httpx2

from ..support.console import Console, Page
from ..support.make import Json, done, list_of

PAGE = "/console/faults"
HOSTILE = "<script>alert(1)</script>\u202e\U0001f984"


def rules(control: httpx2.Client) -> list[Json]:
    """Those that the sandbox has, newest first."""
    return list_of(done(control.get("/faults")), "faults")


def chosen(page: Page, label: str, **values: str) -> dict[str, str]:
    """The values of the form that has a button and these values."""
    return next(
        form.values
        for form in page.forms
        if label in form.label and form.values.items() >= values.items()
    )


def test_presets_are_added_switched_and_removed(
    console: Console, control: httpx2.Client, api: httpx2.Client
) -> None:
    page = console.open(PAGE)
    assert "Nothing fails on purpose" in page.text
    page = console.send(page, "Add", **chosen(page, "Add", preset="outage"))
    assert "Create a fault rule : done." in page.text
    assert 503 == api.get("/v2/orders").status_code
    page = console.open(PAGE)
    assert "Outage acts every request 1 of the journal always" in page.text
    assert "1 of 1" in page.text
    page = console.send(page, "Switch off")
    assert "Outage off" in page.text
    assert 200 == api.get("/v2/orders").status_code
    page = console.send(page, "Switch on")
    page.forms = [form for form in page.forms if form.label == "Remove"]
    page = console.send(page, "Remove")
    assert "Nothing fails on purpose" in page.text
    assert [] == rules(control)


def test_every_preset_is_there(console: Console, control: httpx2.Client) -> None:
    """With what it does, as the contract says."""
    page = console.open(PAGE)
    found = control.get("/openapi.json").json()["components"]["schemas"]["FaultPreset"]["enum"]
    assert found == [form.values["preset"] for form in page.forms if form.label == "Add"]
    for text in (
        "Answers one request in five with 503.",
        "Makes the change and answers 800 to 3,000 ms later.",
    ):
        assert text in page.text


def test_a_rule_is_made_by_a_form_for_what_somebody_wants_to_see(
    console: Console, control: httpx2.Client, api: httpx2.Client
) -> None:
    """Only what is filled in is in it; the list says how many requests it would have met."""
    api.get("/v2/plans")
    values = {
        "name": HOSTILE,
        "match.operationId": "listPlans",
        "when.probability": "0.2",
        "when.after": "2",
        "when.times": "5",
        "then.status": "500",
    }
    page = console.send(console.open(PAGE), "Add the rule", intent="fails", **values)
    rule = rules(control)[0]
    assert {"operationId": "listPlans"} == rule["match"]
    assert {"probability": 0.2, "after": 2, "times": 5} == rule["when"]
    assert {"status": 500} == rule["then"]
    for text in (HOSTILE, "listPlans", "1 of the journal", "20 % of them", "5 of 5 times left"):
        assert text in page.text, text
    assert "<script>alert" not in page.response.text
    for intent, then in (
        ("slow", {"delay_ms": {"min": 800, "max": 3_000}}), ("lost", {"drop_connection": "after"}),
        ("late", {"delay_ms": 5_000}), ("twice", {"webhook_duplicate": True}),
        ("forged", {"webhook_bad_signature": True}), ("dropped", {"webhook_drop": True}),
    ):  # fmt: skip
        console.send(console.open(PAGE), "Add the rule", intent=intent)
        rule = rules(control)[0]
        assert then == rule["then"], intent
        assert rule["match"] == ({} if intent in ("slow", "lost") else {"event": "*"})
    late = {"intent": "late", "match.event": "order.paid", "then.delay_ms": "900"}
    console.send(console.open(PAGE), "Add the rule", **late)
    rule = rules(control)[0]
    assert ({"event": "order.paid"}, {"delay_ms": 900}) == (rule["match"], rule["then"])
    assert 204 == control.delete("/faults").status_code


def test_what_is_refused_is_said_and_stays_in_the_form(
    console: Console, control: httpx2.Client
) -> None:
    for values in (
        {"intent": "fails", "then.status": "200"},
        {"intent": "fails", "then.status": "many"},
        {"intent": "fails", "when.probability": "often"},
        {"intent": "slow", "then.delay_ms": "long"},
    ):
        page = console.send(console.open(PAGE), "Add the rule", **values)
        assert page.status in (409, 422), values
        assert "The rule was refused:" in page.text
        filled = page.form("Add the rule").values
        assert {
            name: value for name, value in values.items() if name != "intent"
        }.items() <= filled.items()
    assert [] == rules(control)


def test_how_often_has_decimals_and_a_minimum(console: Console, control: httpx2.Client) -> None:
    often = {"intent": "fails", "when.probability": "0.125"}
    page = console.send(console.open(PAGE), "Add the rule", **often)
    assert {"probability": 0.125} == rules(control)[0]["when"]
    assert "12.5 % of them" in page.text
    often["when.probability"] = "-1"
    refused = console.send(console.open(PAGE), "Add the rule", **often)
    assert "-1 is less than" in refused.text
    assert 1 == len(rules(control))


def test_the_time_that_is_left_ends(
    console: Console, control: httpx2.Client, api: httpx2.Client
) -> None:
    control.post("/faults", json={"then": {"status": 503}, "when": {"times": 1}})
    control.post(
        "/faults",
        json={"then": {"delay_ms": 1}, "when": {"for_seconds": 60}, "match": {"method": "PUT"}},
    )
    api.get("/v2/orders")
    control.post("/clock/advance", json={"minutes": 2})
    page = console.open(PAGE)
    assert "0 of 1 times left" in page.text
    assert "its time is over" in page.text
    assert 2 == page.text.count(" over ") - page.text.count("is over ")


def test_all_are_removed(console: Console, control: httpx2.Client) -> None:
    for _ in range(2):
        control.post("/faults", json={"preset": "flaky"})
    page = console.send(console.open(PAGE), "Remove all")
    assert "Delete all fault rules : done." in page.text
    assert [] == rules(control)
