"""Personas: a new customer who has lived a life up to now, such as one whose renewal is overdue."""

from itertools import islice

from ...core.problem import Conflict, reference_not_found
from ...core.record import Body
from ...core.shipped import FIXTURES
from ...data.personas import live, offers_of
from ...data.scenario import read_node
from ...domain.documents import normalise
from ...domain.orders import check_buyable
from ...engine.tables.store import Store
from ...server.work import Work
from .named import open_referred

MOST_PLANS = 200  # that one may be about, where none is named: the oldest, which have a past


def add_persona(work: Work, body: Body) -> Body:
    wanted, plans = body.get("customer", {}), _plans(work, body)
    if (
        "document" in wanted
        and work.store.customers.holder("document", normalise(wanted["document"])) is not None
    ):
        raise Conflict.at(
            "customer.document", "Another customer has this document.", "duplicate_document"
        )
    persona = read_node(FIXTURES / "personas" / f"{body['persona']}.yaml", "Persona")
    made = live(work.draft, persona, wanted, offers_of(work.store, plans))
    (customer,) = made["customers"]
    return {
        "persona": body["persona"],
        "customer": customer,
        "subscriptions": made["subscriptions"],
        "orders": made["orders"],
    }


def _plans(work: Work, body: Body) -> list[Body]:
    """The plans that the story may be about: the one that is named, else all on sale.

    Raises Conflict.
    """
    plan = project = None
    if "planId" in body:
        plan = open_referred(work, "planId", body["planId"]).public
    if "projectId" in body:
        project = open_referred(work, "projectId", body["projectId"]).public
    store = work.store
    if plan is not None:
        if project is not None and plan["projectId"] != project["id"]:
            raise reference_not_found("planId", "plan of this project")
        of_plan = store.projects.get(plan["projectId"]).public
        check_buyable(
            of_plan,
            plan,
            plan["payment_methods"][0],
            sold_out=store.is_sold_out(plan, None),
            renews=False,
        )
        return [plan]
    if project is not None and project["status"] != "active":
        raise Conflict.at(
            "projectId",
            f"The project is {project['status']}, and only an active one takes orders.",
            "project_not_active",
        )
    rows = store.plans.rows_of("status", "active")
    if project is not None:
        rows = store.plans.rows_of("projectId", project["id"])
    return [row.public for row in islice(rows, MOST_PLANS) if _is_on_sale(store, row.public)]


def _is_on_sale(store: Store, plan: Body) -> bool:
    project = store.projects.peek(plan["projectId"]) or {}
    is_open = project.get("status") == plan["status"] == "active"
    return is_open and not store.is_sold_out(plan, None)
