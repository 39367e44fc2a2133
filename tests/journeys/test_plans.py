"""Plans over HTTP: defaults and the rhythm of billing.

What is refused and counted is held to the model.
"""

import httpx2
import pytest

from ..support.make import Json, Maker
from .steps import get_plan, update_plan


def test_a_seeded_trial_is_days_on_top_of_what_is_paid(api: httpx2.Client) -> None:
    """No plan promises free days, for a trial is paid in advance."""
    plans = api.get("/v2/plans", params={"limit": 100}).json()["plans"]
    promised = [plan for plan in plans if "dias" in plan["description"]]
    assert promised
    for plan in promised:
        assert f"{plan['trial_period_days']} dias a mais no primeiro mês" in plan["description"]


class TestCreating:
    """createPlan."""

    def test_three_members_make_a_monthly_plan_paid_by_pix(
        self, api: httpx2.Client, make_project: Maker
    ) -> None:
        """Everything but projectId, name and amount has a default; what has no value is
        null, {} or [].
        """
        project = make_project()
        response = api.post(
            "/v2/plans", json={"projectId": project["id"], "name": "Mensal", "amount": 49.9}
        )
        assert response.status_code == 201
        plan = response.json()["plan"]
        assert plan == {
            "id": plan["id"],
            "projectId": project["id"],
            "name": "Mensal",
            "description": None,
            "amount": 49.9,
            "currency": "BRL",
            "billing_type": "recurring",
            "interval": "month",
            "interval_count": 1,
            "trial_period_days": 0,
            "payment_methods": ["pix"],
            "features": [],
            "max_subscribers": None,
            "subscribers_count": 0,
            "status": "active",
            "visibility": "public",
            "metadata": {},
            "createdAt": plan["createdAt"],
            "updatedAt": plan["createdAt"],
        }
        assert response.headers["location"].endswith(f"/v2/plans/{plan['id']}")
        assert get_plan(api, plan) == plan

    @pytest.mark.parametrize(
        "sent", [{"interval": "week", "interval_count": 3}, {"interval": None}, {}]
    )
    def test_a_one_time_plan_has_no_interval(self, make_plan: Maker, sent: Json) -> None:
        """Whatever interval is sent with one_time is stored null."""
        plan = make_plan(billing_type="one_time", **sent)
        assert (plan["interval"], plan["interval_count"]) == (None, None)


class TestUpdating:
    """updatePlan."""

    def test_billing_type_takes_the_interval_with_it(
        self, api: httpx2.Client, make_plan: Maker
    ) -> None:
        """To one_time the interval goes; back to recurring it is a month again."""
        plan = make_plan(interval="year", interval_count=1)
        once = update_plan(api, plan, billing_type="one_time").json()["plan"]
        assert (once["interval"], once["interval_count"]) == (None, None)
        again = update_plan(api, plan, billing_type="recurring").json()["plan"]
        assert (again["interval"], again["interval_count"]) == ("month", 1)
