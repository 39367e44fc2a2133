"""Customers: the people and companies that buy."""

from ..calls import reply
from ..calls.call import Call
from ..calls.reply import Reply, list_reply
from ..domain import customers as rules
from ..domain.places import warnings_for
from ..engine import resources
from ..kernel.record import Body, Record
from ..store.memory import restriction


def list_customers(call: Call, query: Body) -> Reply:
    return list_reply(call, call.store.customers, query, "Customers retrieved.", "customers")


def create_customer(call: Call, body: Body) -> Reply:
    public = rules.new_customer(body, call.defaults("Customer"), call.now_text)
    ident = public["id"] = call.draft.ids.uuid()
    projects = call.who.projects
    hidden = None if projects is None else {"made_by": restriction(projects)}
    record = resources.add(call.draft, "customers", public, hidden)
    call.warn(*warnings_for(public["phones"], public["address"]))
    return reply.enveloped("Customer created.", "customer", record.public).created(call, f"/v2/customers/{ident}")


def get_customer(call: Call, ident: str) -> Reply:
    record = _found(call, ident)
    return reply.enveloped("Customer retrieved.", "customer", record.public)


def update_customer(call: Call, ident: str, body: Body) -> Reply:
    """Absent fields stay, maps are replaced whole."""
    row = call.store.customers.parse(_found(call, ident))
    public = rules.changed_customer(row.public, body, call.now_text)
    record = resources.change(call.draft, call.store.customers, row, public)
    if "phones" in body or "address" in body:
        call.warn(*warnings_for(public["phones"], public["address"]))
    return reply.enveloped("Customer updated.", "customer", record.public)


def _found(call: Call, ident: str) -> Record:
    """The customer, if the caller sees it. Raises NotFound."""
    record = call.find(call.store.customers, ident, "customer")
    if not call.sees_customer(ident):
        raise call.not_found("customer")
    return record
