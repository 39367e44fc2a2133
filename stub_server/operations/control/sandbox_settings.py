"""The settings of a sandbox, and what its customers do with their orders."""

from ...calls import reply
from ...calls.call import Call
from ...calls.reply import Reply
from ...kernel.record import Body


def get_settings(call: Call) -> Reply:
    return reply.value(call.sandbox.settings._asdict())


def update_settings(call: Call, body: Body) -> Reply:
    settings = call.draft.settings = call.sandbox.settings._replace(**body)
    return reply.value(settings._asdict())


def set_behaviour(call: Call, ident: str, body: Body) -> Reply:
    row = call.open_of_any("customers", ident, "customer")
    behaviour = {"payment": body["payment"], "times": body.get("times") if body["payment"] else None}
    hidden = {name: value for name, value in row.hidden.items() if name != "behaviour"}
    if behaviour["payment"] is not None:
        hidden["behaviour"] = behaviour
    call.draft.update(call.store.customers, row, row.public, hidden)
    return reply.value(behaviour)
