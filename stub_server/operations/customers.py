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


async def list_customers(work: Work, query: Body) -> Reply:
    return await list_reply(work, "customers", query, "Customers retrieved.")


def create_customer(work: Work, body: Body) -> Reply:
    customer = rules.changed_customer(work.draft.new("customers"), body)
    projects = work.who.projects
    if projects is not None:
        customer = customer.keeping({"made_by": restriction(projects)})
    record = resources.add(work.draft, customer).record
    work.trace.warn(warnings_for(customer["phones"], customer["address"]))
    return reply.enveloped("Customer created.", "customer", record.public).created(
        work, f"/v2/customers/{record.id}"
    )


def get_customer(work: Work, ident: str) -> Reply:
    record = _found(work, ident)
    return reply.enveloped("Customer retrieved.", "customer", record.public)


def update_customer(work: Work, ident: str, body: Body) -> Reply:
    """Absent fields stay, maps are replaced whole."""
    row = work.store.customers.parse(_found(work, ident))
    changed = rules.changed_customer(row, body)
    record = resources.change(work.draft, changed).record
    if "phones" in body or "address" in body:
        work.trace.warn(warnings_for(changed["phones"], changed["address"]))
    return reply.enveloped("Customer updated.", "customer", record.public)


def _found(work: Work, ident: str) -> Record:
    """The customer, if the caller sees it. Raises NotFound."""
    record = work.find("customers", ident, "customer")
    if not work.sees_customer(ident):
        raise work.not_found("customer")
    return record
