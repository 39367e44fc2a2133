"""The settings of a sandbox, and what its customers do with their orders."""

from ...core.record import Body
from ...server import reply
from ...server.reply import Reply
from ...server.work import Work


def get_settings(work: Work) -> Reply:
    return reply.value(work.sandbox.settings._asdict())


def update_settings(work: Work, body: Body) -> Reply:
    settings = work.draft.settings = work.sandbox.settings._replace(**body)
    return reply.value(settings._asdict())


def get_behaviour(work: Work, ident: str) -> Reply:
    row = work.open_of_any("customers", ident, "customer")
    return reply.value(row.hidden.get("behaviour", {"payment": None, "times": None}))


def set_behaviour(work: Work, ident: str, body: Body) -> Reply:
    row = work.open_of_any("customers", ident, "customer")
    behaviour = {
        "payment": body["payment"],
        "times": body.get("times") if body["payment"] else None,
    }
    hidden = {name: value for name, value in row.hidden.items() if name != "behaviour"}
    if behaviour["payment"] is not None:
        hidden["behaviour"] = behaviour
    work.draft.update(work.store.customers, row, row.public, hidden)
    return reply.value(behaviour)
