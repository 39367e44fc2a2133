"""Plans that somebody pays by: what stands still, and what a deletion takes along."""

import httpx2
import pytest

from ..support.make import Json, Maker
from .members import ask_order, buyer, member, plan_of
from .stage import Stage
from .steps import events_of, get_plan, pay, refused, update_plan


def test_a_price_changes_for_new_subscribers_alone(stage: Stage) -> None:
    """Running ones keep theirs, in renewals and in what is warned of; who comes back pays
    the new one.
    """
    plan, who, other = plan_of(stage), buyer(), buyer()
    held = member(stage, plan, who)
    assert 200 == update_plan(stage.api, plan, amount=60).status_code
    for prices, warned in (
        ({who["document"]: 49.9, other["document"]: 60}, None),
        ({who["document"]: 60, other["document"]: 49.9}, "price_mismatch"),
    ):
        for each in (who, other):
            amount = prices[each["document"]]
            items = [{"description": "Plano", "quantity": 1, "amount": amount}]
            answer = ask_order(stage, plan, each, totalAmount=amount, items=items)
            assert (201, warned) == (answer.status_code, answer.headers.get("x-sandbox-warnings"))
    renewed = stage.control.post(f"/subscriptions/{held['id']}/renew")
    assert (200, 49.9, None) == (
        renewed.status_code,
        renewed.json()["order"]["totalAmount"],
        renewed.headers.get("x-sandbox-warnings"),
    )
    assert (49.9, 60) == (
        renewed.json()["subscription"]["amount"],
        member(stage, plan, buyer())["amount"],
    )
    stage.drive("subscriptions", held["id"], "cancel")
    assert 60 == member(stage, plan, who)["amount"]


class TestPlansWithSubscribers:
    """What running subscriptions fix."""

    @pytest.fixture
    def plan(self, control: httpx2.Client, make_plan: Maker, make_order: Maker) -> Json:
        """A monthly plan with one active subscription."""
        plan = make_plan()
        pay(control, make_order(plan))
        return plan

    @pytest.mark.parametrize(
        ("change", "fields"),
        [
            ({"interval": "year"}, {"interval"}),
            ({"interval_count": 2}, {"interval_count"}),
            ({"billing_type": "one_time"}, {"billing_type", "interval", "interval_count"}),
        ],
    )
    def test_the_rhythm_is_fixed(
        self, api: httpx2.Client, plan: Json, change: Json, fields: set[str]
    ) -> None:
        """409 plan_in_use names what cannot change, and nothing changes."""
        found = refused(update_plan(api, plan, name="Novo nome", **change), 409, "plan_in_use")
        assert found == dict.fromkeys(fields, "plan_in_use")
        assert get_plan(api, plan) == plan | {"subscribers_count": 1}


class TestDeleting:
    """deletePlan."""

    def test_products_lose_it_without_an_event_of_their_own(
        self, api: httpx2.Client, control: httpx2.Client, make_project: Maker, make_plan: Maker
    ) -> None:
        """No product names a plan that is not there; plan.deleted is the one event."""
        project = make_project()
        gone, kept = make_plan(project["id"]), make_plan(project["id"])
        product = api.post(
            "/v2/products",
            json={"projectId": project["id"], "name": "Curso", "planIds": [gone["id"], kept["id"]]},
        ).json()["product"]
        assert api.delete(f"/v2/plans/{gone['id']}").status_code == 200
        assert api.get(f"/v2/products/{product['id']}").json()["product"]["planIds"] == [kept["id"]]
        assert [event["type"] for event in events_of(control, product["id"])] == ["product.created"]
