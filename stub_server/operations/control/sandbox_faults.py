"""Fault rules: which requests to the API fail, wait or lose their response."""

import re

from ...core.clock import iso
from ...core.problem import Conflict
from ...core.record import Body
from ...engine.fault_rules import CONFLICT, Fault, acts_beyond
from ...server import lists
from ...server.reply import Reply
from ...server.work import Work

_is_token = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}").fullmatch
# Headers that HTTP framing depends on: a rule that sets them would only break the connection.
_FRAMING = (
    "content-length",
    "transfer-encoding",
    "connection",
    "x-request-id",
    "x-sandbox-simulated",
    "date",
)


def list_faults(work: Work, query: Body) -> Reply:
    return lists.listed_here(
        "faults", list(work.sandbox.faults.rules.values())[::-1], query, _shown
    )


def create_fault(work: Work, body: Body) -> Body:
    if "then" not in body and "preset" not in body:
        raise Conflict.at("then", "Send then or a preset.", CONFLICT)
    delay = body.get("then", {}).get("delay_ms")
    if isinstance(delay, dict) and delay["min"] > delay["max"]:
        raise Conflict.at(
            "then.delay_ms", "Send a then.delay_ms whose min is not larger than its max.", CONFLICT
        )
    if "delay" in body.get("then", {}) and delay is None:
        raise Conflict.at("then.delay", "Send then.delay_ms with then.delay.", CONFLICT)
    for name in body.get("then", {}).get("headers", {}):
        if not _is_token(name) or name.lower() in _FRAMING or acts_beyond(name):
            raise Conflict.at(
                f"then.headers.{name[:60]}",
                f"A rule cannot set then.headers.{name[:60]}. Leave it out.",
                CONFLICT,
            )
    return {"fault": _shown(work.sandbox.faults.add(body, work.now))}


def delete_faults(work: Work) -> None:
    work.sandbox.faults.rules.clear()


def update_fault(work: Work, ident: str, body: Body) -> Body:
    fault = work.sandbox.faults.get(ident)
    fault.enabled = body["enabled"]
    return {"fault": _shown(fault)}


def delete_fault(work: Work, ident: str) -> None:
    work.sandbox.faults.drop(ident)


def _shown(fault: Fault) -> Body:
    return {
        "id": fault.id,
        "name": fault.asked.get("name"),
        "preset": fault.asked.get("preset"),
        "enabled": fault.enabled,
        "match": fault.asked.get("match", {}),
        "when": fault.when,
        "then": fault.then,
        "seen": fault.seen,
        "hits": fault.hits,
        "created_at": iso(fault.since),
    }
