"""The settings of a sandbox, and what its customers do with their orders."""

from ...core.record import Body, without
from ...server.work import Work

_NO_BEHAVIOUR: Body = {"payment": None, "times": None}


def get_settings(work: Work) -> Body:
    return work.sandbox.settings._asdict()


def update_settings(work: Work, body: Body) -> Body:
    settings = work.draft.settings = work.sandbox.settings._replace(**body)
    return settings._asdict()


def get_behaviour(work: Work, ident: str) -> Body:
    return {
        **work.open_of_any("customers", ident, "customer").hidden.get("behaviour", _NO_BEHAVIOUR)
    }


def set_behaviour(work: Work, ident: str, body: Body) -> Body:
    row = work.open_of_any("customers", ident, "customer")
    hidden, behaviour = without(row.hidden, "behaviour"), _NO_BEHAVIOUR
    if body["payment"] is not None:
        behaviour = {"payment": body["payment"], "times": body.get("times")}
        hidden["behaviour"] = behaviour
    work.draft.put(row.replaced(row.public, hidden))
    return behaviour
