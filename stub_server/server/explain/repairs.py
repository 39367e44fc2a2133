"""The nearest request that succeeds: what refuses it names the repair that makes the next attempt.

A repair changes the request of a situation; one that changes nothing has no advice. The method and
the record in the path stay as they were sent, and no repair switches off what the request did not.
"""

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import orjson

from ...contract.document import JSON, Document, Operation
from ...contract.lifecycles import Lifecycle
from ...contract.source import Json
from ...core.problem import Detail
from ...core.record import Body
from ...domain.cpf import cpf_with_check_digits
from ...domain.lifecycle import path as way
from ...domain.orders import items_cents
from ..layers.validation import cast_of
from ..request import CONTROL
from .attempt import TABLES, Situation
from .mending import ABSENT
from .states import Needed, needed

MOST = 8  # refusals that are repaired for one explanation
LARGEST, WIDEST = 65_536, 1_000  # bytes, and commas, of a body that is mended
_FITS = "This record exists and fits."


async def nearest(s: Situation) -> bool:
    """Repair the request until it succeeds in the copy of the sandbox; whether that
    was possible.
    """
    for _ in range(MOST):
        refusal = await s.rehearsal.ask(s.copy, s.question)
        if refusal is None:
            return True
        s.refusal = refusal
        given, made_before = s.question, len(s.before)
        REPAIRS.get(refusal.code, without_it)(s)
        new_calls = s.before[made_before:]
        if s.question == given and not new_calls:
            return False
        for call in new_calls:
            if await s.rehearsal.ask(s.copy, call) is not None:
                return False
    return False


# -- what the contract rejects: route, media type, JSON, parameters and body


def another_route(s: Situation) -> None:
    """404: the most similar path.

    No other is tried: after "active" for "activate" would come "archive".
    """
    given = s.question.path
    method, path = s.rehearsal.routing.nearest(s.question.method, given) or ("", "")
    if method == s.question.method and "{" not in path and not path.startswith(CONTROL):
        s.change("path", given, path, "The API has no such path.", path=path)
        s.operations, s.values = s.document.routed(path)


def as_json(s: Situation) -> None:
    """400 and 415: the body declared as JSON; one that is none is replaced by the
    contract's example.
    """
    if not s.question.body:
        s.set_header("content-type", None, "There is no body.")
        return
    s.set_header("content-type", JSON, "Bodies are JSON, in UTF-8.")
    example = _harmless_example(s)
    if s.body is ABSENT and example is not ABSENT:
        why = "The body cannot be read as JSON. This is the contract's example."
        s.change("body", s.question.body.decode("utf-8", "replace"), example, why)
        s.send_json(example)


def mended(s: Situation) -> None:
    """422: query, headers and body as the contract has them, all violations at once."""
    raw = s.question.body
    if len(raw) > LARGEST or raw.count(b",") > WIDEST:
        return
    body, example, schema = s.body, _harmless_example(s), s.operation.body
    for entry in _by_place(s.refusal.details):
        if entry["in"] == "query":
            _mend_parameter(s, entry["field"], entry["message"])
        elif entry["in"] == "header":
            s.set_header(entry["field"].lower(), None, entry["message"])
        elif entry["field"] == "body":
            body = copy.deepcopy(example)
            unknown = "" if raw else " The journal has no body of this request."
            why = f"{entry['message']}{unknown} This is the contract's example."
            s.change("body", s.body, body, why)
        elif schema is not None:
            _mend_member(s, schema, body, entry, example)
    if body is not ABSENT:
        s.send_json(body)


def _by_place(details: Sequence[Detail]) -> list[Detail]:
    """One violation of each place, as one value may break two rules; unknown fields first."""
    found = {}
    for entry in details:
        found[entry["in"], entry["field"]] = entry
    return sorted(found.values(), key=lambda entry: entry["code"] != "unknown_field")


def _mend_member(s: Situation, schema: Json, body: Any, entry: Detail, example: Any) -> None:
    """Replace the value at the place of a violation by one that the contract accepts, or
    leave it out.
    """
    for field, given, made in s.mender.mend(schema, body, entry, s.later, example):
        s.change(f"body.{field}", given, made, entry["message"])


def _mend_parameter(s: Situation, name: str, why: str) -> None:
    """Replace a parameter by a value that the contract accepts, or leave it out."""
    sent = dict(parse_qsl(s.question.query, keep_blank_values=True, errors="replace"))
    given: Any = sent.pop(name, ABSENT)
    for parameter in s.operation.parameters:
        if parameter.place == "query" and parameter.name == name:
            schema = s.mender.resolve(parameter.schema)
            text = "" if given is ABSENT else given
            value = s.mender.value(schema, (cast_of(schema) or str)(text), s.later)
            if value is not ABSENT:
                sent[name] = value if isinstance(value, str) else orjson.dumps(value).decode()
    query = urlencode(sent, safe=":,", quote_via=quote)
    s.change(f"query.{name}", given, sent.get(name, ABSENT), why, query=query)


def example_of(operation: Operation, document: Document) -> Any:
    """The body of the contract's first example of a request; ABSENT where it has none."""
    return next(iter(document.examples(operation.raw.get("requestBody"))), ABSENT)


def _harmless_example(s: Situation) -> Any:
    """The contract's example, where it would switch something off with what keeps it on."""
    example = example_of(s.operation, s.document)
    if not isinstance(example, dict):
        return example
    found = dict(example)
    for name, value in (("status", "active"), ("is_active", True), ("expires_at", s.later)):
        if name in example or s.member(name) is not None:
            found[name] = value
    return found


# -- what the rules refuse: with another record, after calls that come first, or without it


def another_record(s: Situation) -> None:
    """A record that exists, in place of the one that the body names; a product may be of no plan.

    What keeps it from being used is the next refusal.
    """
    name, bracket = "", ""
    if s.refusal.details:
        name, bracket, _ = s.refusal.details[0]["field"].partition("[")
    projects = [row for row in s.newest(s.store.projects) if row.public["status"] != "archived"]
    projects.sort(key=lambda row: row.public["status"] != "active")
    if name == "planIds" and bracket:
        s.set_member(name, [], _FITS)
    elif bracket:
        s.set_member(name, [row.id for row in projects[:1]], _FITS)
    elif s.member("planId") is not None:
        _another_plan(s, [row.id for row in projects])
    elif s.member("projectId") is not None and projects:
        s.set_member("projectId", projects[0].id, _FITS)


def _another_plan(s: Situation, projects: list[str]) -> None:
    """The order for another plan, if possible one of the project that the body names."""
    wanted = str(s.member("projectId")).lower()
    projects.sort(key=lambda ident: ident != wanted)
    plans = [row for row in s.newest(s.store.plans) if row.public["projectId"] in projects]
    plans.sort(key=lambda row: projects.index(row.public["projectId"]))
    plans.sort(key=lambda row: row.public["status"] != "active")
    if plans:
        s.set_member("projectId", plans[0].public["projectId"], _FITS)
        s.set_member("planId", plans[0].id, _FITS)


def first_moved(s: Situation) -> None:
    """The request after the calls that bring its record into a state from which it is accepted, or
    with another one.
    """
    found = needed(s, s.refusal.code)
    if found is not None and found.lifecycle is not None and _move_first(s, found, found.lifecycle):
        return
    if s.refusal.code != "invalid_state_transition":
        another_record(s)
    elif found is not None and s.member("status") is not None:
        s.set_member("status", found.is_now, "The status stays as it is.")


def _move_first(s: Situation, found: Needed, lifecycle: Lifecycle) -> bool:
    """Bring a record into one of the states that it needs, if calls can."""
    why = (
        f"The {found.resource.lower()} is {found.is_now}, and must be {' or '.join(found.values)}."
    )
    for state in found.values:
        actions = _actions(s, lifecycle, way(lifecycle, found.is_now, state))
        for action in actions:
            body = ABSENT
            if action.body_required:
                body = example_of(action, s.document)
            s.call_first(why, action, dict.fromkeys(TABLES, found.row.id), body)
        if actions:
            return True
    return False


def _actions(s: Situation, lifecycle: Lifecycle, states: list[str]) -> list[Operation]:
    """The operations that move a record through these states; none where a move has no operation.

    Of several for one move it is the one that needs least.
    """
    found = []
    for from_, to in pairwise(states):
        move, able = lifecycle.find(from_, to), []
        if move is None:
            return []
        for name in move.by:
            operation = s.document.operations.get(name)
            if operation is not None and not operation.path.endswith("}"):
                able.append(operation)
        if not able:
            return []
        found.append(min(able, key=lambda operation: operation.body_required))
    return found


def changed_plan(s: Situation) -> None:
    """The order by another payment method, or after a change of its plan."""
    found, method = needed(s, s.refusal.code), s.member("paymentMethod") or "pix"
    if found is None:
        return
    changes: Body = {"status": "active"}
    if s.refusal.code == "plan_sold_out":
        changes = {"max_subscribers": None}
    if s.refusal.code == "payment_method_not_allowed":
        if s.operation.id == "createOrder":
            s.set_member("paymentMethod", found.is_now[0], "The plan accepts this method.")
            return
        changes = {"payment_methods": [*found.is_now, method]}
    operation = s.document.operations.get("updatePlan")
    if operation is not None:
        s.call_first(
            "The plan must allow this order.", operation, {"planId": found.row.id}, changes
        )


def total_of_items(s: Situation) -> None:
    """409 of an order whose total is another one than that of its items: the sum."""
    total = items_cents(s.member("items")) / 100
    s.set_member("totalAmount", total, "The items add up to this.")


def later_expiry(s: Situation) -> None:
    """409 of an API key that has expired: with a later expiry."""
    s.set_member("expires_at", s.later, "The key has expired. An active key needs a later expiry.")


def without_it(s: Situation) -> None:
    """The request without the header, or the members of its body, that the refusal names; a value
    of a unique key becomes one like it.
    """
    for entry in s.refusal.details:
        name = entry["field"]
        if entry["in"] == "header":
            s.set_header(name.lower(), None, entry["message"])
        elif name in _SIMILAR:
            like = s.member(name)
            if not like and s.target is not None:
                like = s.target.public[name]
            # which grows with each record that is made
            made = _SIMILAR[name](str(like), s.copy.log.number + 1)
            s.set_member(name, made, entry["message"])
        elif entry["in"] == "body":
            s.drop_member(name, entry["message"])


def _other_document(like: str, number: int) -> str:
    digits = re.sub(r"[^0-9]", "", like)
    return cpf_with_check_digits(f"{(int(digits[:9] or 1) + number) % 10**9:09}")


_SIMILAR: Mapping[str, Callable[[str, int], str]] = {
    "document": _other_document,
    "name": lambda like, number: f"{like[:110]} {number}",
    "sku": lambda like, number: f"{like[:56]}-{number}",
    "url": lambda like, number: f"{like[:2_000]}{'&' if '?' in like else '?'}receiver={number}",
}
"""A value that is like another one, by the member of the unique key."""

REPAIRS: Mapping[str, Callable[[Situation], None]] = {
    "malformed_json": as_json,
    "unsupported_media_type": as_json,
    "validation_error": mended,
    "route_not_found": another_route,
    "reference_not_found": another_record,
    "project_archived": another_record,
    "invalid_state_transition": first_moved,
    "project_not_active": first_moved,
    "plan_not_active": changed_plan,
    "plan_sold_out": changed_plan,
    "payment_method_not_allowed": changed_plan,
    "amount_mismatch": total_of_items,
    "api_key_expired": later_expiry,
}
"""By error code; of any other the request is sent without what is refused."""
