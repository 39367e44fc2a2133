"""Plans over HTTP: defaults, the rhythm of billing, what may change under subscribers, and what keeps a plan alive."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from ..support.contract import component, violations
from ..support.make import Json, Maker
from .refusals import refused

UNKNOWN = "00000000-0000-4000-8000-000000000000"


def get_plan(api: httpx2.Client, plan: Json) -> Json:
    """The plan as it is now."""
    response = api.get(f"/v2/plans/{plan['id']}")
    assert response.status_code == 200, response.text
    found: Json = response.json()["plan"]
    return found


def update(api: httpx2.Client, plan: Json, **changes: Any) -> httpx2.Response:
    """Change a plan."""
    return api.put(f"/v2/plans/{plan['id']}", json=changes)


def names(api: httpx2.Client, **query: str) -> list[str]:
    """The names on the first page of a list of plans."""
    response = api.get("/v2/plans", params=query)
    assert response.status_code == 200, response.text
    return [plan["name"] for plan in response.json()["plans"]]


def events_of(control: httpx2.Client, ident: str) -> list[Json]:
    """What happened to a resource, oldest first."""
    found: list[Json] = control.get("/events", params={"resource_id": ident}).json()["events"]
    return found[::-1]


def pay(control: httpx2.Client, order: Json) -> None:
    """Pay an order as a payer would."""
    response = control.post(f"/orders/{order['id']}/pay")
    assert response.status_code == 200, response.text


def archive(api: httpx2.Client, project_id: str) -> None:
    """Archive a project."""
    assert api.post(f"/v2/projects/{project_id}/archive").status_code == 200


@pytest.fixture
def restricted(api: httpx2.Client, make_project: Maker) -> Iterator[tuple[httpx2.Client, Json]]:
    """A client whose API key knows one project alone, and that project."""
    project = make_project()
    body = {"name": "Chave", "scopes": ["plans:read", "plans:write"], "allowed_projects": [project["id"]]}
    key = api.post("/api-keys", json=body).json()["api_key"]["private_key"]
    with httpx2.Client(base_url=api.base_url, headers={"Authorization": f"Bearer {key}"}) as client:
        yield client, project


class TestCreating:
    """createPlan."""

    def test_three_members_make_a_monthly_plan_paid_by_pix(self, api: httpx2.Client, make_project: Maker) -> None:
        """Everything but projectId, name and amount has a default; what has no value is null, {} or []."""
        project = make_project()
        response = api.post("/v2/plans", json={"projectId": project["id"], "name": "Mensal", "amount": 49.9})
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

    def test_what_is_sent_is_stored_as_sent(self, make_plan: Maker) -> None:
        """No member of the request is lost or changed."""
        sent = {
            "name": "  Anual Ünico ",
            "description": "Doze meses pelo preço de dez",
            "amount": 497,
            "currency": "BRL",
            "billing_type": "recurring",
            "interval": "year",
            "interval_count": 2,
            "trial_period_days": 7,
            "payment_methods": ["boleto", "pix"],
            "features": ["Aulas ao vivo", "Aulas ao vivo"],
            "max_subscribers": 100,
            "status": "inactive",
            "visibility": "private",
            "metadata": {"origem": "site"},
        }
        plan = make_plan(**sent)
        assert {name: plan[name] for name in sent} == sent

    @pytest.mark.parametrize("sent", [{"interval": "week", "interval_count": 3}, {"interval": None}, {}])
    def test_a_one_time_plan_has_no_interval(self, make_plan: Maker, sent: Json) -> None:
        """Whatever interval is sent with one_time is stored null."""
        plan = make_plan(billing_type="one_time", **sent)
        assert (plan["interval"], plan["interval_count"]) == (None, None)

    def test_null_on_a_recurring_plan_means_one_month(self, make_plan: Maker) -> None:
        """A recurring plan always has an interval."""
        plan = make_plan(interval=None, interval_count=None)
        assert (plan["interval"], plan["interval_count"]) == ("month", 1)

    def test_an_upper_case_project_id_is_the_same_project(self, make_project: Maker, make_plan: Maker) -> None:
        """UUIDs are compared and stored in lower case."""
        project = make_project()
        assert make_plan(project["id"].upper())["projectId"] == project["id"]

    def test_an_unknown_project_is_a_missing_reference(self, api: httpx2.Client) -> None:
        """404, and the field that refers to nothing."""
        response = api.post("/v2/plans", json={"projectId": UNKNOWN, "name": "Mensal", "amount": 10})
        assert refused(response, 404, "reference_not_found") == {"projectId": "reference_not_found"}

    def test_an_archived_project_gets_no_plan(self, api: httpx2.Client, make_project: Maker) -> None:
        """409, also when the name is taken: the project decides first."""
        project = make_project()
        archive(api, project["id"])
        response = api.post("/v2/plans", json={"projectId": project["id"], "name": "Mensal", "amount": 10})
        assert refused(response, 409, "project_archived") == {"projectId": "project_archived"}

    @pytest.mark.parametrize("status", ["draft", "active", "suspended"])
    def test_any_other_project_gets_one(
        self, api: httpx2.Client, make_project: Maker, make_plan: Maker, status: str
    ) -> None:
        """Only archiving closes a project to new plans."""
        project = make_project(status="draft" if status == "draft" else "active")
        if status == "suspended":
            assert api.post(f"/v2/projects/{project['id']}/suspend").status_code == 200
        assert make_plan(project["id"])["projectId"] == project["id"]

    @pytest.mark.parametrize("taken", ["Básico", "BÁSICO", "básico"])
    def test_a_name_is_free_once_per_project(
        self, api: httpx2.Client, make_project: Maker, make_plan: Maker, taken: str
    ) -> None:
        """Case does not make a name another; another project does."""
        project, other = make_project(), make_project()
        make_plan(project["id"], name="Básico")
        response = api.post("/v2/plans", json={"projectId": project["id"], "name": taken, "amount": 10})
        assert refused(response, 409, "duplicate_name") == {"name": "duplicate_name"}
        assert make_plan(other["id"], name=taken)["name"] == taken

    def test_the_project_counts_its_plans(self, api: httpx2.Client, make_project: Maker, make_plan: Maker) -> None:
        """plans_count follows creation and deletion."""
        project = make_project()

        def count() -> int:
            found: int = api.get(f"/v2/projects/{project['id']}").json()["data"]["project"]["plans_count"]
            return found

        assert count() == 0
        plan = make_plan(project["id"])
        make_plan(project["id"])
        assert count() == 2
        api.delete(f"/v2/plans/{plan['id']}")
        assert count() == 1


class TestUpdating:
    """updatePlan."""

    def test_absent_members_stay_and_null_clears(self, api: httpx2.Client, make_plan: Maker) -> None:
        """A map is replaced whole."""
        plan = make_plan(description="Texto", max_subscribers=5, metadata={"a": "1", "b": "2"}, features=["x"])
        changed = update(api, plan, description=None, max_subscribers=None, metadata={"c": "3"}).json()["plan"]
        assert changed == plan | {"description": None, "max_subscribers": None, "metadata": {"c": "3"}}
        assert get_plan(api, plan) == changed

    def test_only_updated_at_moves_with_time(
        self, api: httpx2.Client, control: httpx2.Client, make_plan: Maker
    ) -> None:
        """createdAt stays."""
        plan = make_plan()
        assert control.post("/clock/advance", json={"seconds": 60}).status_code == 200
        changed = update(api, plan, visibility="private").json()["plan"]
        assert changed["createdAt"] == plan["createdAt"]
        assert changed["updatedAt"] > plan["updatedAt"]

    def test_billing_type_takes_the_interval_with_it(self, api: httpx2.Client, make_plan: Maker) -> None:
        """To one_time the interval goes; back to recurring it is a month again."""
        plan = make_plan(interval="year", interval_count=1)
        once = update(api, plan, billing_type="one_time").json()["plan"]
        assert (once["interval"], once["interval_count"]) == (None, None)
        again = update(api, plan, billing_type="recurring").json()["plan"]
        assert (again["interval"], again["interval_count"]) == ("month", 1)

    def test_an_interval_sent_to_a_one_time_plan_is_stored_null(self, api: httpx2.Client, make_plan: Maker) -> None:
        """Accepted, as at creation."""
        plan = make_plan(billing_type="one_time")
        changed = update(api, plan, interval="week", interval_count=2).json()["plan"]
        assert (changed["interval"], changed["interval_count"]) == (None, None)

    def test_a_name_may_be_kept_but_not_taken(self, api: httpx2.Client, make_project: Maker, make_plan: Maker) -> None:
        """Its own name in other letters is free for a plan; another's is not."""
        project = make_project()
        plan = make_plan(project["id"], name="Ouro")
        make_plan(project["id"], name="Prata")
        assert update(api, plan, name="OURO").json()["plan"]["name"] == "OURO"
        assert refused(update(api, plan, name="prata"), 409, "duplicate_name") == {"name": "duplicate_name"}

    def test_a_plan_never_changes_its_project(self, api: httpx2.Client, make_plan: Maker, make_project: Maker) -> None:
        """projectId is no member of the update."""
        response = update(api, make_plan(), projectId=make_project()["id"])
        assert refused(response, 422, "validation_error") == {"projectId": "unknown_field"}

    def test_an_unknown_plan_is_404(self, api: httpx2.Client) -> None:
        """For reading, changing and deleting alike."""
        refused(api.get(f"/v2/plans/{UNKNOWN}"), 404, "not_found")
        refused(api.put(f"/v2/plans/{UNKNOWN}", json={"name": "x"}), 404, "not_found")
        refused(api.delete(f"/v2/plans/{UNKNOWN}"), 404, "not_found")

    def test_plans_of_an_archived_project_stand_still(self, api: httpx2.Client, make_plan: Maker) -> None:
        """They can be read, not changed or deleted."""
        plan = make_plan()
        archive(api, plan["projectId"])
        refused(update(api, plan, name="Outro"), 409, "project_archived")
        refused(api.delete(f"/v2/plans/{plan['id']}"), 409, "project_archived")
        assert get_plan(api, plan) == plan


class TestPlansWithSubscribers:
    """What running subscriptions fix."""

    @pytest.fixture
    def plan(self, control: httpx2.Client, make_plan: Maker, make_order: Maker) -> Json:
        """A monthly plan with one active subscription."""
        plan = make_plan()
        pay(control, make_order(plan))
        return plan

    def test_the_plan_counts_them(self, api: httpx2.Client, plan: Json) -> None:
        """subscribers_count is what runs now."""
        assert get_plan(api, plan)["subscribers_count"] == 1
        listed = api.get("/v2/plans", params={"projectId": plan["projectId"]}).json()["plans"]
        assert [entry["subscribers_count"] for entry in listed] == [1]

    @pytest.mark.parametrize(
        ("change", "fields"),
        [
            ({"amount": 59.9}, {"amount"}),
            ({"interval": "year"}, {"interval"}),
            ({"interval_count": 2}, {"interval_count"}),
            ({"billing_type": "one_time"}, {"billing_type", "interval", "interval_count"}),
        ],
    )
    def test_price_and_rhythm_are_fixed(self, api: httpx2.Client, plan: Json, change: Json, fields: set[str]) -> None:
        """409 plan_in_use names what cannot change, and nothing changes."""
        found = refused(update(api, plan, name="Novo nome", **change), 409, "plan_in_use")
        assert found == dict.fromkeys(fields, "plan_in_use")
        assert get_plan(api, plan) == plan | {"subscribers_count": 1}

    def test_sending_the_same_price_and_rhythm_is_no_change(self, api: httpx2.Client, plan: Json) -> None:
        """A client that sends the whole plan back is not refused; everything else may change."""
        same = {"amount": 49.90, "interval": None, "interval_count": 1, "billing_type": "recurring"}
        changed = update(api, plan, **same, name="Novo nome", status="inactive", trial_period_days=7)
        assert changed.status_code == 200, changed.text
        assert changed.json()["plan"]["name"] == "Novo nome"

    def test_they_keep_the_plan_alive(self, api: httpx2.Client, plan: Json) -> None:
        """deletePlan is refused, and says why."""
        response = api.delete(f"/v2/plans/{plan['id']}")
        refused(response, 409, "plan_in_use")
        assert response.json()["message"] == "The plan has 1 running subscription."

    def test_when_they_have_ended_everything_is_free_again(
        self, api: httpx2.Client, control: httpx2.Client, plan: Json
    ) -> None:
        """A canceled subscription holds nothing."""
        (subscription,) = api.get("/v2/subscriptions", params={"planId": plan["id"]}).json()["subscriptions"]
        ended = control.post(f"/subscriptions/{subscription['id']}/cancel")
        assert ended.status_code == 200, ended.text
        assert update(api, plan, amount=59.9).json()["plan"]["subscribers_count"] == 0
        assert api.delete(f"/v2/plans/{plan['id']}").status_code == 200


class TestDeleting:
    """deletePlan."""

    def test_a_deleted_plan_is_gone_and_its_name_free(self, api: httpx2.Client, make_plan: Maker) -> None:
        """404 afterwards, in lists too."""
        plan = make_plan(name="Ouro")
        response = api.delete(f"/v2/plans/{plan['id']}")
        assert (response.status_code, response.json()) == (200, {"error": False, "message": "Plan deleted."})
        refused(api.get(f"/v2/plans/{plan['id']}"), 404, "not_found")
        refused(api.delete(f"/v2/plans/{plan['id']}"), 404, "not_found")
        assert names(api, projectId=plan["projectId"]) == []
        assert make_plan(plan["projectId"], name="Ouro")["id"] != plan["id"]

    def test_pending_orders_keep_it_alive(
        self, api: httpx2.Client, control: httpx2.Client, make_plan: Maker, make_order: Maker
    ) -> None:
        """Until the last of them is settled; what is over holds nothing."""
        plan = make_plan(billing_type="one_time")
        first, second = make_order(plan), make_order(plan)
        refusal = api.delete(f"/v2/plans/{plan['id']}")
        refused(refusal, 409, "plan_in_use")
        assert refusal.json()["message"] == "The plan has 2 pending orders."
        pay(control, first)
        refused(api.delete(f"/v2/plans/{plan['id']}"), 409, "plan_in_use")
        assert control.post(f"/orders/{second['id']}/cancel").status_code == 200
        assert api.delete(f"/v2/plans/{plan['id']}").status_code == 200

    def test_products_lose_it_without_an_event_of_their_own(
        self, api: httpx2.Client, control: httpx2.Client, make_project: Maker, make_plan: Maker
    ) -> None:
        """No product names a plan that is not there; plan.deleted is the one event."""
        project = make_project()
        gone, kept = make_plan(project["id"]), make_plan(project["id"])
        product = api.post(
            "/v2/products", json={"projectId": project["id"], "name": "Curso", "planIds": [gone["id"], kept["id"]]}
        ).json()["product"]
        assert api.delete(f"/v2/plans/{gone['id']}").status_code == 200
        assert api.get(f"/v2/products/{product['id']}").json()["product"]["planIds"] == [kept["id"]]
        assert [event["type"] for event in events_of(control, product["id"])] == ["product.created"]


class TestListing:
    """listPlans."""

    @pytest.fixture
    def project_id(self, make_project: Maker, make_plan: Maker) -> str:
        """A project with three plans, made in this order."""
        ident: str = make_project()["id"]
        make_plan(ident, name="Mensal", amount=49.9, description="Cobrança todo mês")
        make_plan(ident, name="Vitalício", amount=997, billing_type="one_time")
        make_plan(ident, name="anual", amount=497, status="inactive", description="Melhor preço")
        return ident

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ({"sort": "name"}, ["anual", "Mensal", "Vitalício"]),
            ({"sort": "-name"}, ["Vitalício", "Mensal", "anual"]),
            ({"sort": "amount"}, ["Mensal", "anual", "Vitalício"]),
            ({"sort": "-amount"}, ["Vitalício", "anual", "Mensal"]),
            ({"sort": "name", "status": "active"}, ["Mensal", "Vitalício"]),
            ({"status": "inactive"}, ["anual"]),
            ({"billing_type": "one_time"}, ["Vitalício"]),
            ({"billing_type": "one_time", "status": "inactive"}, []),
            ({"search": "VITALICIO"}, ["Vitalício"]),
            ({"search": "cobranca"}, ["Mensal"]),
            ({"search": "preço", "status": "active"}, []),
            ({"sort": "amount", "limit": "1", "page": "2"}, ["anual"]),
            ({"page": "9"}, []),
        ],
    )
    def test_filters_combine_and_sort_orders(
        self, api: httpx2.Client, project_id: str, query: dict[str, str], expected: list[str]
    ) -> None:
        """Each filter narrows; search ignores case and accents."""
        assert names(api, projectId=project_id, **query) == expected

    def test_an_unknown_project_has_no_plans(self, api: httpx2.Client, project_id: str) -> None:
        """A filter that matches nothing is no error; letters of either case match."""
        assert names(api, projectId=UNKNOWN) == []
        assert len(names(api, projectId=project_id.upper())) == 3


class TestRestrictedKeys:
    """API keys with allowed_projects."""

    def test_other_projects_do_not_open(self, restricted: tuple[httpx2.Client, Json], make_plan: Maker) -> None:
        """403 for one plan, filtered silently in lists."""
        client, project = restricted
        own, other = make_plan(project["id"]), make_plan()
        assert client.get(f"/v2/plans/{own['id']}").json()["plan"] == own
        assert update(client, own, name="Outro").status_code == 200
        for answer in (
            client.get(f"/v2/plans/{other['id']}"),
            update(client, other, name="Outro"),
            client.delete(f"/v2/plans/{other['id']}"),
            client.post("/v2/plans", json={"projectId": other["projectId"], "name": "Novo", "amount": 10}),
        ):
            assert refused(answer, 403, "project_not_allowed") == {"allowed_projects": "project_not_allowed"}
        listed = client.get("/v2/plans").json()
        assert [plan["id"] for plan in listed["plans"]] == [own["id"]]
        assert names(client, projectId=other["projectId"]) == []


def test_a_plans_life_is_told_in_events(api: httpx2.Client, control: httpx2.Client, make_plan: Maker) -> None:
    """Each event carries the plan as it then was, the deleted one included."""
    plan = make_plan()
    changed = update(api, plan, amount=59.9).json()["plan"]
    assert update(api, plan, name="").status_code == 422
    assert api.delete(f"/v2/plans/{plan['id']}").status_code == 200
    events = events_of(control, plan["id"])
    told = [(event["type"], event["data"]["plan"]) for event in events]
    assert told == [("plan.created", plan), ("plan.updated", changed), ("plan.deleted", changed)]
    assert [violations(component("PlanEvent"), event) for event in events] == [[], [], []]
