"""Personas: a new customer who has lived a life up to now, such as one whose renewal is overdue."""

from ...core.problem import Conflict, NotFound, reference_not_found
from ...core.record import Body
from ...data.newcomers import live, offers_of
from ...domain.documents import normalise
from ...domain.orders import check_buyable
from ...server import reply
from ...server.reply import Reply
from ...server.work import Work


def add_persona(work: Work, body: Body) -> Reply:
    wanted, plans = body.get("customer", {}), _plans(work, body)
    if "document" in wanted and work.store.customers.holder("document", normalise(wanted["document"])) is not None:
        raise Conflict.at("customer.document", "Another customer has this document.", "duplicate_document")
    persona = work.server.sandboxes.factory.seeding.persona(body["persona"])
    made = live(work.draft, persona, wanted, offers_of(work.store, plans))
    (customer,) = made["customers"]
    members = {"customer": customer, "subscriptions": made["subscriptions"], "orders": made["orders"]}
    return reply.value({"persona": body["persona"], **members}, 201)


def _plans(work: Work, body: Body) -> list[Body]:
    """The plans that the story may be about: the one that is named, else all on sale. Raises Conflict."""
    named: dict[str, str] = {name: body[name].lower() for name in ("planId", "projectId") if name in body}
    for name, ident in named.items():
        what = name.removesuffix("Id")
        try:
            work.open_of_any(f"{what}s", ident, what)
        except NotFound:
            raise reference_not_found(name, what) from None
    store = work.store
    if "planId" in named:
        plan = store.plans.peek(named["planId"])
        assert plan is not None  # it was found above
        if named.get("projectId", plan["projectId"]) != plan["projectId"]:
            raise reference_not_found("planId", "plan of this project")
        project = store.projects.peek(plan["projectId"])
        assert project is not None  # plans go with their project
        sold_out = store.is_sold_out(plan, None)
        check_buyable(project, plan, plan["payment_methods"][0], sold_out=sold_out, renews=False)
        return [plan]
    if "projectId" in named:
        project = store.projects.peek(named["projectId"])
        if project is not None and project["status"] != "active":
            message = f"The project is {project['status']}, and only an active one takes orders."
            raise Conflict.at("projectId", message, "project_not_active")
    return [row.public for row in store.plans.all_rows() if _is_on_sale(work, row.public, named)]


def _is_on_sale(work: Work, plan: Body, named: dict[str, str]) -> bool:
    store = work.store
    project = store.projects.peek(plan["projectId"])
    if project is None or project["status"] != "active" or named.get("projectId", project["id"]) != project["id"]:
        return False
    return plan["status"] == "active" and not store.is_sold_out(plan, None)
