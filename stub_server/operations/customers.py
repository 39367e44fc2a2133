"""Customers: the people and companies that buy."""

from ..core.record import Body, Record
from ..domain import customers as rules
from ..domain.places import warnings_for
from ..engine import resources
from ..engine.tables.store import restriction
from ..server import reply
from ..server.lists import list_reply
from ..server.reply import Reply
from ..server.work import Work
from .shown import shown


async def list_customers(work: Work, query: Body) -> Reply:
    return await list_reply(work, "customers", query, "Customers retrieved.")


def create_customer(work: Work, body: Body) -> Reply:
    customer = rules.changed_customer(work.draft.new("customers"), body)
    projects = work.who.projects
    if projects is not None:
        customer = customer.keeping({"made_by": restriction(projects)})
    row = resources.add(work.draft, customer)
    work.trace.warn(warnings_for(customer["phones"], customer["address"]))
    return shown(work, row, "Customer created.").created(work, f"/v2/customers/{row.id}")


def get_customer(work: Work, ident: str) -> Reply:
    return reply.enveloped("Customer retrieved.", "customer", _found(work, ident).public)


def update_customer(work: Work, ident: str, body: Body) -> Reply:
    """Absent fields stay, maps are replaced whole."""
    row = work.store.customers.parse(_found(work, ident))
    changed = rules.changed_customer(row, body)
    row = resources.change(work.draft, changed)
    if "phones" in body or "address" in body:
        work.trace.warn(warnings_for(changed["phones"], changed["address"]))
    return shown(work, row, "Customer updated.")


def _found(work: Work, ident: str) -> Record:
    """The customer, if the caller sees it. Raises NotFound."""
    record = work.find("customers", ident, "customer")
    if not work.sees_customer(ident):
        raise work.not_found("customer")
    return record
