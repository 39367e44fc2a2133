"""What a refusal is about: the place in the contract, and the state of the record."""

from __future__ import annotations

import re
from typing import Any

import orjson

from ..contract.document import Document, Operation
from ..contract.source import METHODS, Json, escaped
from ..kernel.record import Body, Row
from ..kernel.text import nearest
from .attempt import TABLES, Situation
from .rehearsal import Answer
from .repairs import plan_of, project_of

_NAMED = 4  # records that are named
_LONGEST = 200  # characters of an id
_LONGEST_EXCERPT = 600  # characters
_STEP = re.compile(r"\[([0-9]+)\]|([^.\[\]]+)")
_OF_CREDENTIALS = ("missing_credentials", "invalid_token", "token_expired", "jwt_required")


def place_of(document: Document, operation: Operation, refusal: Answer) -> Body | None:
    """The pointer and excerpt that a refusal of the contract or of the credential is about; None without one."""
    code, details = refusal.code, refusal.details
    item = f"#/paths/{escaped(operation.path)}"
    base = f"{item}/{operation.method.lower()}"
    if code == "method_not_allowed":
        methods = sorted(name.upper() for name in document.raw["paths"][operation.path] if name in METHODS)
        return {"pointer": item, "excerpt": ", ".join(methods)}
    if code in ("insufficient_scope", "scope_escalation"):
        return _excerpt(base + "/x-scopes", operation.raw.get("x-scopes", []))
    if code in _OF_CREDENTIALS:
        return _excerpt(base + "/security", operation.raw.get("security", document.raw.get("security", [])))
    if code in ("unsupported_media_type", "malformed_json"):
        content = (document.resolve(operation.raw.get("requestBody")) or {}).get("content", {})
        return _excerpt(base + "/requestBody/content", list(content))
    if not details:
        return None
    field, place = details[0]["field"], details[0].get("in")
    if place == "body":
        return None if operation.body is None else _in_body(document, operation.body, base, field)
    for number, parameter in enumerate(operation.parameters):
        if parameter.name.lower() == field.lower():
            pointer = operation.raw["parameters"][number].get("$ref", f"{base}/parameters/{number}")
            return _excerpt(pointer + "/schema", parameter.schema)
    return None


def _in_body(document: Document, schema: Json, base: str, field: str) -> Body | None:
    """The schema of a member of the body; of a member that it does not name, the object's."""
    pointer, node = _followed(document, f"{base}/requestBody/content/application~1json/schema", schema)
    for index, name in () if field == "body" else _STEP.findall(field):
        rest = node.get("additionalProperties")
        if index and "items" in node:
            step, inner = "items", node["items"]
        elif name in node.get("properties", {}):
            step, inner = f"properties/{escaped(name)}", node["properties"][name]
        elif name and isinstance(rest, dict):
            step, inner = "additionalProperties", rest
        else:
            break
        pointer, node = _followed(document, f"{pointer}/{step}", inner)
    return _excerpt(pointer, node)


def _followed(document: Document, pointer: str, node: Json) -> tuple[str, Json]:
    return node.get("$ref", pointer), document.resolve(node)


def _excerpt(pointer: str, node: Any) -> Body:
    if isinstance(node, dict):
        node = {name: value for name, value in node.items() if not name.startswith("x-basis")}
        if "properties" in node:
            node["properties"] = list(node["properties"])
    text = orjson.dumps(node, option=orjson.OPT_NON_STR_KEYS).decode()
    return {"pointer": pointer, "excerpt": text if len(text) <= _LONGEST_EXCERPT else text[:_LONGEST_EXCERPT] + "…"}


# By error code: the resource, its field, and the set of its lifecycle, or the values, that a rule asks for.
_STATES: dict[str, tuple[str, str, str | list[str]]] = {
    "order_already_paid": ("Order", "status", "payable"),
    "order_not_payable": ("Order", "status", "payable"),
    "order_not_refundable": ("Order", "status", "refundable"),
    "project_not_active": ("Project", "status", "selling"),
    "project_archived": ("Project", "status", "open"),
    "plan_not_active": ("Plan", "status", ["active"]),
    "plan_sold_out": ("Plan", "max_subscribers", []),
    "payment_method_not_allowed": ("Plan", "payment_methods", []),
    "refund_window_closed": ("Order", "status", ["paid less than 90 days ago"]),
    "project_has_activity": ("Project", "status", ["without paid or open orders and without running subscriptions"]),
    "plan_in_use": ("Plan", "status", ["without open orders and without running subscriptions"]),
    "webhook_deleted": ("WebhookLogEntry", "webhookId", ["a webhook that exists"]),
    "log_not_retryable": ("WebhookLogEntry", "status", "retryable"),
    "api_key_expired": ("ApiKey", "expires_at", []),
}


def state_of(s: Situation, code: str) -> Body | None:
    """The state behind a refusal, as it is now; None where no record's state is behind it."""
    if code == "method_not_allowed":
        asked, operations = s.attempt.question, s.operations
        moves = [f"{method} ({operation.id})" for method, operation in sorted(operations.items())]
        return _shown("Operation", asked.path, "method", asked.method, sorted(operations), moves)
    if code in ("not_found", "merchant_not_found"):
        return _similar_records(s)
    if code == "invalid_state_transition":
        return _impossible_move(s)
    if code not in _STATES:
        return None
    resource, field, needed = _STATES[code]
    row = project_of(s) if resource == "Project" else plan_of(s) if resource == "Plan" else s.target
    if row is None:
        return None
    lifecycle = s.copy.rules.lifecycles.get(resource)
    if isinstance(needed, str):
        needed = list(lifecycle.sets[needed]) if lifecycle is not None else []
    is_state = lifecycle is not None and lifecycle.field == field
    return _shown(resource, row.id, field, row.public[field], needed, _exits(s, resource, row) if is_state else [])


def _impossible_move(s: Situation) -> Body | None:
    """The record of the path, and the states from which it goes to the one that the request names or leads to."""
    table = next((s.table(name) for name in s.values if name in TABLES), None)
    lifecycle = None if table is None else s.copy.rules.lifecycles.get(table.spec.schema)
    if lifecycle is None or s.target is None:
        return None
    status = s.attempt.member("status")
    own = [move for move in lifecycle.moves if s.operation.id in move.by]
    wanted = status if isinstance(status, str) else next((move.to for move in own), None)
    needed = dict.fromkeys(move.from_ for move in own if move.to == wanted and move.from_ != "new")
    moves = _exits(s, lifecycle.resource, s.target)
    is_now = s.target.public[lifecycle.field]
    return _shown(lifecycle.resource, s.target.id, lifecycle.field, is_now, [*needed] or [str(wanted)], moves)


def _exits(s: Situation, resource: str, row: Row) -> list[str]:
    lifecycle = s.copy.rules.lifecycles[resource]
    is_now = row.public[lifecycle.field]
    return [f"{move.to} ({' or '.join(move.by)})" for move in lifecycle.exits(is_now) if move.to != is_now]


def _similar_records(s: Situation) -> Body | None:
    """The record that the path nearly names, else the newest ones."""
    name = next(iter(s.values), "")
    table = s.store.api_keys if name == "publicKey" else s.table(name)
    if table is None:
        return None
    field = "public_key" if name == "publicKey" else "id"
    known = [row.public[field] for row in s.newest(table) if field == "id" or row.public["is_active"]]
    similar = nearest(s.values[name], known)
    needed = [similar] if similar else known[:_NAMED] or ["a record of the caller, who has none"]
    return _shown(table.spec.schema, s.values[name][:_LONGEST], field, None, needed, [])


def _shown(resource: str, ident: str, field: str, is_: object, needed: list[str], moves: list[str]) -> Body:
    return {"resource": resource, "id": ident, "field": field, "is": is_, "needed": needed, "moves": moves}
