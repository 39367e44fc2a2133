"""Customers: the people and companies that buy."""

from ..domain import customers as rules
from ..kernel.record import Body, Change
from . import reply
from .call import Call
from .listing import list_reply
from .reply import Reply


def list_customers(call: Call, query: Body) -> Reply:
    """200 with a page of customers."""
    return list_reply(call, call.store.customers, query, "Customers retrieved.", "customers")


def create_customer(call: Call, body: Body) -> Reply:
    """201 with the customer; 409 when the document is taken or contradicts its type."""
    public = rules.new_customer(body, call.blank("Customer"), call.now_text)
    rules.check_unique(call.store.customers.holder("document", public["document"]), None)
    ident = public["id"] = call.sandbox.ids.uuid()
    call.warn(*rules.warnings(public))
    change = Change().create("customers", ident, public, {}).emit("customer.created", "customers", ident)
    record = call.apply(change)[ident]
    answer = reply.enveloped("Customer created.", "customer", record.json, 201)
    return answer.located(f"{call.prefix}/v2/customers/{ident}")


def get_customer(call: Call, ident: str) -> Reply:
    """200 with the customer."""
    record = call.find(call.store.customers, ident, "customer")
    return reply.enveloped("Customer retrieved.", "customer", record.json)


def update_customer(call: Call, ident: str, body: Body) -> Reply:
    """200 with the customer as it is now; absent fields stay, maps are replaced whole."""
    row = call.open(call.store.customers, ident, "customer")
    public = rules.changed_customer(row.public, body, call.now_text)
    rules.check_unique(call.store.customers.holder("document", public["document"]), ident)
    if "phones" in body or "address" in body:
        call.warn(*rules.warnings(public))
    change = Change().update("customers", row, public).emit("customer.updated", "customers", ident)
    record = call.apply(change)[ident]
    return reply.enveloped("Customer updated.", "customer", record.json)
