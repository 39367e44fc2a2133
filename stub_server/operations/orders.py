"""Orders: a purchase of one plan of one project."""

from ..contract.formats import end_of_range
from ..core.record import Body, Row
from ..domain import customers as customer_rules
from ..domain import orders as rules
from ..domain.places import warnings_for
from ..engine import ordering, resources
from ..server import reply
from ..server.lists import listed, query_of
from ..server.reply import Reply
from ..server.work import Work


async def list_orders(work: Work, query: Body) -> Reply:
    found = query_of(work, "orders", query, handled=("paid_since", "paid_until"))
    if "paid_since" in query or "paid_until" in query:
        found.between = (
            "paid_at",
            end_of_range(query, "paid_since"),
            end_of_range(query, "paid_until"),
        )
    return await listed(work, "orders", found, "Orders retrieved.")


def create_order(work: Work, body: Body) -> Reply:
    return _create(work, body, body["paymentMethod"])


def create_pix_order(work: Work, body: Body) -> Reply:
    return _create(work, body, "pix")


def get_order(work: Work, ident: str) -> Reply:
    return reply.bare(work.find_allowed("orders", ident, "order").public)


def _create(work: Work, body: Body, method: str) -> Reply:
    """An order of a plan, which renews the buyer's running subscription of it, if there is one."""
    store, project_id = work.store, body["projectId"].lower()
    project = work.project_named(project_id)
    plan = rules.check_plan(project_id, store.plans.peek(body["planId"].lower()))
    buyer = customer_rules.buyer(body["customer"])
    ident = store.customers.holder("document", buyer["document"])
    known = None if ident is None else store.customers.peek(ident)
    sold_out = store.is_sold_out(plan, ident)
    held = None if ident is None else store.running_of(ident, plan["id"])
    rules.check_buyable(project, plan, method, sold_out=sold_out, renews=held is not None)
    # spelled as in the records, and the same strings
    body |= {"projectId": plan["projectId"], "planId": plan["id"]}
    price = plan["amount"] if held is None else held["amount"]
    warnings = rules.warnings(body, price, strict_amounts=work.sandbox.settings.strict_amounts)
    copy_only = ident is not None and not work.sees_customer(ident)
    draft, named = work.draft, (buyer["name"], buyer["email"])
    if known is not None and not copy_only and named != (known["name"], known["email"]):
        warnings += ("customer_differs",)
    work.trace.warn(warnings)
    customer_id = ident or _customer(work, buyer, plan["projectId"])
    order = ordering.buy(draft, rules.NewOrder(body, buyer, customer_id, method, copy_only))
    return _created(work, order)


def _created(work: Work, order: Row) -> Reply:
    """The reply with a new order; a header names the magic value that governs it."""
    answer = reply.bare(order.record.public).created(work, f"/v2/orders/{order.id}")
    simulated = rules.magic_of(order["customer"]["email"]).name
    if "behaviour" in order.hidden:
        simulated = f"behaviour:{order['behaviour']}"
    if simulated:
        answer.headers.append((b"x-sandbox-simulated", simulated.encode()))
    return answer


def _customer(work: Work, buyer: Body, project_id: str) -> str:
    """Create a customer from a buyer and return its id; the event carries the project
    of the order.
    """
    body, left_out = customer_rules.from_buyer(buyer)
    work.trace.warn((*left_out, *warnings_for(body["phones"], body["address"])))
    customer = customer_rules.changed_customer(work.draft.new("customers"), body)
    return resources.add(work.draft, customer, project=project_id).id
