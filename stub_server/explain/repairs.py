"""Every error code: its kind, the rule behind it, and the repair of a request that was refused with it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import count, pairwise
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from ..calls.call import CONTROL
from ..contract.document import JSON, Document, Lifecycle, Operation
from ..domain.documents import cpf_with_check_digits
from ..domain.lifecycle import path as way
from ..domain.orders import items_cents
from ..http.inside import Question
from ..http.validation import cast_of
from ..kernel.clock import DAY, iso
from ..kernel.ids import NextIds
from ..kernel.record import Row, UniqueKey
from ..store.table import Table
from .attempt import TABLES, Attempt, Situation
from .mending import ABSENT, Unmendable
from .states import needed

LARGEST, WIDEST = 65_536, 1_000  # bytes, and commas, of a body that is mended
_TRIED = 4  # records, and values
_FITS = "This record exists and fits."
_YEAR = 365 * DAY


# -- what the contract rejects: route, media type, JSON, parameters and body


def another_route(s: Situation) -> Iterator[Attempt]:
    """404: the most similar path. No other is tried: after "active" for "activate" would come "archive"."""
    asked = s.attempt.question
    method, path = s.rehearsal.routing.nearest(asked.method, asked.path) or ("", "")
    if method == asked.method and "{" not in path and not path.startswith(CONTROL):
        yield s.attempt.asking({"path": "The API has no such path."}, path=path)


def as_json(s: Situation) -> Iterator[Attempt]:
    """400 and 415: the body declared as JSON, else the contract's example."""
    asked, example = s.attempt.question, example_of(s.operation, s.document)
    if not asked.body:  # a media type of no body
        yield s.attempt.without_header("content-type", "There is no body.")
    declared = s.attempt.with_header("content-type", JSON, "Bodies are JSON, in UTF-8.")
    yield declared
    if example is not ABSENT:
        yield declared.with_body(example, {"body": "The body cannot be read as JSON. This is the contract's example."})


def mended(s: Situation) -> Iterator[Attempt]:
    """422: query, headers and body as the contract has them, all violations at once."""
    raw, body = s.attempt.question.body, s.attempt.body
    if len(raw) > LARGEST or raw.count(b",") > WIDEST:
        return
    with suppress(Unmendable):
        attempt = _with_parameters(s)
        if s.operation.body is not None and (raw or s.operation.body_required):
            example = example_of(s.operation, s.document)
            attempt = attempt.with_body(s.mender.mend(s.operation.body, body, s.now, example), {})
        details = s.refusal.details
        reasons = {d["in"] if d["field"] == "body" else f"{d['in']}.{d['field']}": d["message"] for d in details}
        yield attempt._replace(why={**reasons, **attempt.why})


def example_of(operation: Operation, document: Document) -> Any:
    """The body of the contract's first example of a request; ABSENT where it has none."""
    return next(iter(document.examples(operation.raw.get("requestBody"))), ABSENT)


def _with_parameters(s: Situation) -> Attempt:
    """The attempt with parameters that the contract accepts. One that cannot be mended is left out."""
    asked, details = s.attempt.question, s.refusal.details
    known = [parameter for parameter in s.operation.parameters if parameter.place == "query"]
    schemas = {parameter.name: s.mender.resolve(parameter.schema) for parameter in known}
    is_closed = any(d["in"] == "query" and d["code"] == "unknown_parameter" for d in details)
    required = [parameter.name for parameter in known if parameter.required]
    whole = {"type": "object", "properties": schemas, "required": required, "additionalProperties": not is_closed}
    sent = parse_qsl(asked.query, keep_blank_values=True, errors="replace")
    made = s.mender.mend(whole, {name: (cast_of(schemas.get(name, {})) or str)(text) for name, text in sent}, s.now)
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in made.items()}
    refused = {d["field"].lower() for d in details if d["in"] == "header"}
    headers = {name: value for name, value in asked.headers.items() if name not in refused}
    return s.attempt.asking({}, query=urlencode(texts, safe=":,", quote_via=quote), headers=headers)


# -- what the rules refuse: without it, with another record, or after calls that come first


def without_it(s: Situation) -> Iterator[Attempt]:
    """The request without the members of its body, or the header, that the refusal names."""
    attempt = s.attempt
    for entry in s.refusal.details:
        if entry["in"] == "header":
            attempt = attempt.without_header(entry["field"].lower(), entry["message"])
        else:
            attempt = attempt.without_member(entry["field"].split("."), entry["message"])
    if attempt.question != s.attempt.question:
        yield attempt


def another_record(s: Situation) -> Iterator[Attempt]:
    """Records that exist and can be used, in place of those that the body names."""
    name, bracket, _ = s.field.partition("[")
    if bracket:
        table = s.store.plans if name == "planIds" else s.store.projects
        project = s.attempt.member("projectId") or (s.target and s.target.public.get("projectId"))
        equal = {"projectId": str(project).lower()} if name == "planIds" else {}
        found = [row.id for row in s.newest(table, **equal)[:1]]
        yield s.attempt.with_member([name], found, _FITS)
    elif s.attempt.member("planId") is not None:
        yield from _offers(s)
    elif s.attempt.member("projectId") is not None:  # what belongs to an archived project cannot change
        live = [row for row in s.newest(s.store.projects) if row.public["status"] != "archived"]
        for row in sorted(live, key=lambda row: row.public["status"] != "active")[:_TRIED]:
            yield s.attempt.with_member(["projectId"], row.id, _FITS)
        if not live:
            yield from _made(s, s.store.projects, "createProject", "projectId", status="active")


def _offers(s: Situation) -> Iterator[Attempt]:
    """The order for a plan and project that sell now, first for those that the body names."""
    wanted, method = s.attempt.body, s.attempt.member("paymentMethod") or "pix"
    active = [row.id for row in s.newest(s.store.projects) if row.public["status"] == "active"]

    def sells(row: Row) -> bool:
        plan = row.public
        if plan["projectId"] not in active or plan["status"] != "active":
            return False
        return method in plan["payment_methods"]

    def distance(row: Row) -> tuple[bool, ...]:
        plan = row.public
        return (
            row.id != str(wanted["planId"]).lower(),
            plan["projectId"] != str(wanted.get("projectId")).lower(),
            plan["amount"] != wanted.get("totalAmount"),
            plan["max_subscribers"] is not None,
        )

    plans = [row for row in s.newest(s.store.plans) if sells(row)]
    for row in sorted(plans, key=distance)[:_TRIED]:
        attempt = s.attempt.with_member(["projectId"], row.public["projectId"], _FITS)
        yield attempt.with_member(["planId"], row.id, _FITS)
    if active:
        yield from _made(s, s.store.plans, "createPlan", "planId", projectId=active[0])
    else:  # the next repair makes a plan
        yield from _made(s, s.store.projects, "createProject", "projectId", status="active")


def _made(s: Situation, table: Table, operation_id: str, member: str, **given: Any) -> Iterator[Attempt]:
    """The attempt after a call that makes the record that it names; ids follow from the position of the sandbox."""
    operation = s.document.operations.get(operation_id)
    example = ABSENT if operation is None else example_of(operation, s.document)
    if operation is None or not isinstance(example, dict):
        return
    try:
        body = s.mender.mend(operation.body, example | given, s.now, example)
    except Unmendable:
        return
    for key in s.document.unique.get(table.spec.schema, ()):
        body |= {key.name: _unused(table, key, body)} if key.name in body else {}
    for attempt in s.after("There is no record that can be used.", s.call(operation_id, {}, body)):
        ids = {"projectId": body.get("projectId"), member: NextIds(s.copy.ids).uuid()}
        for name, ident in ids.items():
            attempt = attempt.with_member([name], ident, _FITS)
        yield attempt


def first_moved(s: Situation) -> Iterator[Attempt]:
    """The request after the calls that bring its record into a state from which it is accepted, or with another one."""
    found = needed(s, s.refusal.code)
    if found is not None and found.lifecycle is not None:
        why = f"The {found.resource.lower()} is {found.is_now}, and must be {' or '.join(found.values)}."
        for state in found.values:
            calls = _moves(s, found.lifecycle, found.row, state)
            if calls:
                yield from s.after(why, *calls)
    if s.refusal.code == "invalid_state_transition":
        if found is not None and s.attempt.member("status") is not None:
            yield s.attempt.with_member(["status"], found.is_now, "The status stays as it is.")
    else:
        yield from another_record(s)


def _moves(s: Situation, lifecycle: Lifecycle, row: Row, to: str) -> list[Question | None]:
    """The calls that bring a record to a state; None in the place of a move that no call makes."""
    calls: list[Question | None] = []
    for from_, then in pairwise(way(lifecycle, row.public[lifecycle.field], to)):
        move = lifecycle.find(from_, then)
        found = [s.document.operations.get(name) for name in (move.by if move else ())]
        actions = [each for each in found if each is not None and not each.path.endswith("}")]
        actions.sort(key=lambda each: each.body_required)
        calls.append(_call_about(s, actions[0], row) if actions else None)
    return calls


def _call_about(s: Situation, action: Operation, row: Row) -> Question | None:
    """A call about a record, with the contract's example as its body where one is required."""
    parameter = next((name for name in TABLES if f"{{{name}}}" in action.path), "")
    if not action.body_required:
        return s.call(action.id, {parameter: row.id})
    return s.call(action.id, {parameter: row.id}, example_of(action, s.document))


def changed_plan(s: Situation) -> Iterator[Attempt]:
    """The order by another payment method, after a change of its plan, or for another plan."""
    found, method = needed(s, s.refusal.code), s.attempt.member("paymentMethod") or "pix"
    changes: dict[str, Any] = {"status": "active"}
    if s.refusal.code == "plan_sold_out":
        changes = {"max_subscribers": None}
    if found is not None and s.refusal.code == "payment_method_not_allowed":
        changes = {"payment_methods": [*found.is_now, method]}
        for accepted in found.is_now if s.operation.id == "createOrder" else ():
            yield s.attempt.with_member(["paymentMethod"], accepted, "The plan accepts this method.")
    if found is not None:
        call = s.call("updatePlan", {"planId": found.row.id}, changes)
        yield from s.after("The plan must allow this order.", call)
    yield from another_record(s)


def total_of_items(s: Situation) -> Iterator[Attempt]:
    total = items_cents(s.attempt.member("items")) / 100
    yield s.attempt.with_member(["totalAmount"], total, "The items add up to this.")


def later_expiry(s: Situation) -> Iterator[Attempt]:
    until = iso(s.copy.clock.now + _YEAR)
    yield s.attempt.with_member(["expires_at"], until, "The key has expired. An active key needs a later expiry.")


def free_value(s: Situation) -> Iterator[Attempt]:
    """409 of a unique key: a value like the one that another record has, and that no record has."""
    for table in s.store.tables.values():
        for key in s.document.unique.get(table.spec.schema, ()):
            if key.code == s.refusal.code and s.operation.id.endswith(table.spec.schema) and key.name in _SIMILAR:
                known = s.target.public if s.target else {"projectId": None}
                made = _unused(table, key, known | s.attempt.body)
                yield s.attempt.with_member([key.name], made, "No other record has this value.")


def _unused(table: Table, key: UniqueKey, body: dict[str, Any]) -> str:
    ids = {key.scope: str(body[key.scope]).lower()} if key.scope and body.get(key.scope) else {}
    similar = (_SIMILAR[key.name](str(body[key.name]), number) for number in count(2))
    return next(made for made in similar if table.is_free(key.name, body | ids | {key.name: made}))


def _document(like: str, number: int) -> str:
    digits = int.from_bytes(sha256(f"{like}/{number}".encode()).digest()[:8], "big")
    return cpf_with_check_digits(f"{digits:020d}"[-9:])


_SIMILAR: Mapping[str, Callable[[str, int], str]] = {
    "document": _document,
    "name": lambda like, number: f"{like[:110]} {number}",
    "sku": lambda like, number: f"{like[:58]}-{number}",
    "url": lambda like, number: f"{like[:2_000]}{'&' if '?' in like else '?'}receiver={number}",
}
"""Values that are like another one, by the member of the unique key."""


# -- every error code


Repair = Callable[[Situation], Iterator[Attempt]]
AUTH, CONTRACT, RULE, REFERENCE, FAULT = "auth", "contract", "rule", "reference", "fault"


class Kind(NamedTuple):
    """`repair` is None where nothing is changed but what every attempt has: the ready token, and no simulation.

    `is_listed` says that a nearest request is looked for; `text` is the rule, or why there is no repair.
    """

    kind: str
    text: str
    repair: Repair | None = None
    is_listed: bool = True


_CREDENTIAL = "Every request carries a credential that is valid, may be used from here and has the operation's scopes."
_STATE = "A record changes its state only as the contract's lifecycle allows."

KINDS: Mapping[str, Kind] = {
    # who sends it
    "missing_credentials": Kind(AUTH, _CREDENTIAL),
    "invalid_token": Kind(AUTH, _CREDENTIAL),
    "token_expired": Kind(AUTH, "A token is valid until its exp, by the machine's clock."),
    "api_key_inactive": Kind(AUTH, "An inactive API key is rejected."),
    "insufficient_scope": Kind(AUTH, "The credential must have every scope of the operation."),
    "jwt_required": Kind(AUTH, "API keys are managed with a JWT."),
    "scope_escalation": Kind(AUTH, "A caller gives API keys only scopes that the caller has."),
    "ip_not_allowed": Kind(AUTH, "An API key with allowed_ips works from those addresses only."),
    "project_not_allowed": Kind(AUTH, "An API key with allowed_projects works for those projects only."),
    "host_not_allowed": Kind(AUTH, "On loopback the Host header names this machine."),
    "delivery_not_allowed": Kind(AUTH, "Webhook deliveries to this server are accepted by inboxes only."),
    # what the contract accepts
    "malformed_request": Kind(CONTRACT, "Headers and query are well-formed and have values that are supported."),
    "malformed_json": Kind(CONTRACT, "A body is JSON.", as_json),
    "unsupported_media_type": Kind(CONTRACT, "A body is declared as application/json, in UTF-8.", as_json),
    "validation_error": Kind(CONTRACT, "Query, headers and body fit the operation's schemas.", mended),
    "metadata_key_invalid": Kind(CONTRACT, "A key of a free map has 1 to 64 characters and no NUL.", without_it),
    "route_not_found": Kind(CONTRACT, "The contract lists every path.", another_route),
    "method_not_allowed": Kind(CONTRACT, "The contract names a path's methods."),
    # what it refers to
    "not_found": Kind(REFERENCE, "The path names a record that the caller sees."),
    "reference_not_found": Kind(
        REFERENCE, "The body refers to records that exist and belong together.", another_record
    ),
    "merchant_not_found": Kind(REFERENCE, "A public key finds its merchant while it is active."),
    "sandbox_not_found": Kind(REFERENCE, "A path below /s/ names a sandbox that exists."),
    # what the rules allow
    "duplicate_document": Kind(RULE, "A document belongs to one customer of a merchant.", free_value),
    "duplicate_name": Kind(RULE, "Projects of a merchant, and plans of a project, differ in name.", free_value),
    "duplicate_sku": Kind(RULE, "Products of a project differ in SKU.", free_value),
    "duplicate_url": Kind(RULE, "No two webhooks of a merchant have the same address and project.", free_value),
    "document_type_conflict": Kind(RULE, "document_type and type agree with the document.", without_it),
    "api_key_expired": Kind(RULE, "An expired API key cannot be active.", later_expiry),
    "invalid_state_transition": Kind(RULE, _STATE, first_moved),
    "project_not_active": Kind(RULE, "Only an active project takes orders.", first_moved),
    "project_archived": Kind(RULE, "An archived project cannot be changed.", another_record),
    "project_has_activity": Kind(
        RULE, "A project with paid or open orders or running subscriptions cannot be deleted, only archived."
    ),
    "plan_not_active": Kind(RULE, "An inactive plan takes no orders.", changed_plan),
    "plan_sold_out": Kind(RULE, "A plan has at most max_subscribers subscribers.", changed_plan),
    "amount_mismatch": Kind(
        RULE, "Where amounts are strict, the items of an order add up to its total.", total_of_items
    ),
    "plan_in_use": Kind(
        RULE,
        "A plan with subscribers keeps its interval. With subscribers or open orders it cannot be deleted.",
        without_it,
    ),
    "payment_method_not_allowed": Kind(RULE, "An order is paid by one of its plan's payment_methods.", changed_plan),
    "webhook_limit": Kind(RULE, "A merchant has at most 20 webhooks.", None, False),
    "webhook_deleted": Kind(RULE, "A delivery is sent only if its webhook exists."),
    "log_not_retryable": Kind(RULE, "A cancelled delivery is not sent again."),
    "idempotency_key_reused": Kind(RULE, "An Idempotency-Key belongs to one request.", without_it),
    "step_not_kept": Kind(RULE, "Only a state that is stored can be read or restored."),
    "idempotency_in_progress": Kind(RULE, "One request at a time is processed with an Idempotency-Key."),
    # what the control surface does to orders
    "order_already_paid": Kind(RULE, "An order can be paid once.", without_it),
    "order_not_payable": Kind(RULE, "Only an open order can be paid, in full and before it expires.", without_it),
    "order_not_refundable": Kind(RULE, "Only a paid order can be refunded.", first_moved),
    "refund_exceeds_amount": Kind(RULE, "No more is refunded than was paid.", without_it),
    "refund_window_closed": Kind(RULE, "A payment can be refunded within 90 days.", first_moved),
    "failure_code_not_applicable": Kind(RULE, "A payment fails with a code of its payment method.", without_it),
    # what was simulated, or is over by now
    "rate_limited": Kind(FAULT, "A caller sends a limited number of requests (--rate-limit). Send it again later."),
    "simulated_fault": Kind(FAULT, "The sandbox was asked to fail. Send the same request without the fault."),
    "request_timeout": Kind(FAULT, "A request must arrive in time. Send it again."),
    "too_many_connections": Kind(FAULT, "A server has a limited number of connections. Send it again later."),
    "internal_error": Kind(FAULT, "A defect: its cause is in the server's log.", None, False),
    # without a repair
    "payload_too_large": Kind(CONTRACT, "A body has at most 1 MiB. A larger one is rejected.", None, False),
    "uri_too_long": Kind(CONTRACT, "A query has at most 1,000 members.", None, False),
    "headers_too_large": Kind(
        CONTRACT, "A request has at most 100 headers, and target and headers at most 64 KiB in all.", None, False
    ),
    "not_implemented": Kind(RULE, "The operation, method or transfer coding is not supported.", None, False),
    "sandbox_unavailable": Kind(RULE, "A broken sandbox serves no requests until it is reset.", None, False),
    "store_unavailable": Kind(RULE, "The store cannot be written: its disk may be full.", None, False),
    "server_stopping": Kind(RULE, "A server that is stopping is not ready. Send it again later.", None, False),
    "admin_key_required": Kind(AUTH, "/_sandbox requires the admin key.", None, False),
}
"""By error code. Of the control surface only requests about orders and subscriptions are repaired."""
