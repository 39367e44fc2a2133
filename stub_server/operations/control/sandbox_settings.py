"""The settings of a sandbox, and what its customers do with their orders."""

from ...core.record import Body, without
from ...server import reply
from ...server.reply import Reply
from ...server.work import Work

_NO_BEHAVIOUR: Body = {"payment": None, "times": None}


def get_settings(work: Work) -> Reply:
    return reply.value(work.sandbox.settings._asdict())


def update_settings(work: Work, body: Body) -> Reply:
    settings = work.draft.settings = work.sandbox.settings._replace(**body)
    return reply.value(settings._asdict())


def get_behaviour(work: Work, ident: str) -> Reply:
    row = work.open_of_any("customers", ident, "customer")
    return reply.value(row.hidden.get("behaviour", _NO_BEHAVIOUR))


def set_behaviour(work: Work, ident: str, body: Body) -> Reply:
    row = work.open_of_any("customers", ident, "customer")
    hidden, behaviour = without(row.hidden, "behaviour"), dict(_NO_BEHAVIOUR)
    if body["payment"] is not None:
        behaviour = {"payment": body["payment"], "times": body.get("times")}
        hidden["behaviour"] = behaviour
    work.draft.put(row.replaced(row.public, hidden))
    return reply.value(behaviour)
