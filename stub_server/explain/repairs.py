"""Every error code: its kind, the rule behind it, and the repair of a request that was refused with it."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import count, pairwise
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

import orjson
import yaml

from ..calls.call import CONTROL
from ..contract.document import JSON, Document, Operation
from ..domain.documents import cnpj_with_check_digits, cpf_with_check_digits, infer, normalise
from ..domain.lifecycle import path as way
from ..domain.orders import DEFAULT_FAILURE, items_cents
from ..domain.payments import can_be_late
from ..http.inside import Question
from ..http.validation import cast_of
from ..kernel.clock import DAY, iso
from ..kernel.ids import NextIds
from ..kernel.record import Row, UniqueKey
from ..store.table import Table
from .attempt import Attempt, Situation
from .mending import ABSENT, Unmendable

LARGEST, WIDEST = 65_536, 1_000  # bytes, and commas, of a body that is mended
_LONGEST = 4_096  # bytes that are guessed at: reading them another way is slow
_MEMBERS = 200
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TRIED = 4  # records
_ITEM = re.compile(r"([A-Za-z_]+)\[[0-9]+\]").fullmatch
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
    """400 and 415: the body as what it was probably intended to be, declared as JSON."""
    asked, example = s.attempt.question, example_of(s.operation, s.document)
    if not asked.body:  # a media type of no body
        headers = {name: value for name, value in asked.headers.items() if name != "content-type"}
        yield s.attempt.asking({"header.Content-Type": "There is no body."}, headers=headers)
    declared = s.attempt.with_header("content-type", JSON, "Bodies are JSON, in UTF-8.")
    yield declared
    body = guessed(asked.body)
    if isinstance(body, dict | list):
        yield declared.with_body(body, {"body": "The body is not JSON. This is the same content as JSON."})
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


def keys_that_fit(s: Situation) -> Iterator[Attempt]:
    """409: maps without the keys that are refused, which OpenAPI 3.0 cannot forbid."""
    body, why = s.attempt.body, {}
    for entry in s.refusal.details:
        *way, last = entry["field"].split(".")
        node = body
        for step in way:
            node = node[step]
        node[last] = {key: value for key, value in node[last].items() if 0 < len(key) <= 64 and "\0" not in key}
        why[f"body.{entry['field']}"] = entry["message"]
    yield s.attempt.with_body(body, why)


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


def guessed(raw: bytes) -> Any | None:
    """A body read as a form, or as YAML, which is like what Python prints; None where nothing is like it."""
    text = raw.decode("utf-8-sig", "replace").replace("\0", "").strip()
    if len(raw) > _LONGEST or text.count("[") + text.count("{") > _MEMBERS:
        return None
    with suppress(yaml.YAMLError, ValueError, TypeError, RecursionError):
        if text[:1] not in ("{", "["):
            return dict(parse_qsl(text, max_num_fields=_MEMBERS)) or None
        if "&" not in text and "*" not in text:  # anchors and aliases
            return orjson.loads(orjson.dumps(yaml.load(text, Loader=_LOADER)))  # noqa: S506 (it makes texts alone)
    return None


# -- records that exist and can be used


def another_record(s: Situation) -> Iterator[Attempt]:
    """Records that exist and can be used, in place of those that the body names."""
    item = _ITEM(s.field)
    if item is not None:
        yield from _items(s, item[1])
    elif s.attempt.member("planId") is not None:
        yield from _offers(s)
    elif s.attempt.member("projectId") is not None:  # what belongs to an archived project cannot change
        yield from _projects(s)


def _items(s: Situation, name: str) -> Iterator[Attempt]:
    """A list of ids without those that do not exist; where none is left, with one that does."""
    table, equal = s.store.projects, {}
    if name == "planIds":
        project = s.attempt.member("projectId") or (s.target and s.target.public["projectId"])
        table, equal = s.store.plans, {"projectId": str(project).lower()}

    def exists(ident: str) -> bool:
        row = table.peek(ident.lower())
        return row is not None and equal.items() <= row.items()

    kept = [ident for ident in s.attempt.member(name) if exists(ident)]
    kept = kept or [row.id for row in s.newest(table, **equal)[:1]]
    yield s.attempt.with_member([name], kept, "These records exist.")


def _projects(s: Situation) -> Iterator[Attempt]:
    """A project that is not archived, first those that sell."""
    live = [row for row in s.newest(s.store.projects) if row.public["status"] != "archived"]
    for row in sorted(live, key=lambda row: row.public["status"] != "active")[:_TRIED]:
        yield s.attempt.with_member(["projectId"], row.id, _FITS)
    if not live:
        yield from _made(s, s.store.projects, "createProject", "projectId", status="active")


def _offers(s: Situation) -> Iterator[Attempt]:
    """The order for a plan and project that sell now, first for those that the body names."""
    wanted, method = s.attempt.body, s.attempt.member("paymentMethod") or "pix"
    active = [row.id for row in s.newest(s.store.projects) if row.public["status"] == "active"]

    def rank(row: Row) -> tuple[bool, ...]:
        plan = row.public
        return (
            plan["status"] != "active",
            row.id != str(wanted["planId"]).lower(),
            plan["projectId"] != str(wanted.get("projectId")).lower(),
            method not in plan["payment_methods"],
            plan["amount"] != wanted.get("totalAmount"),
            plan["max_subscribers"] is not None,
        )

    plans = [row for row in s.newest(s.store.plans) if row.public["projectId"] in active]
    for row in sorted(plans, key=rank)[:_TRIED]:
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


def project_of(s: Situation) -> Row | None:
    """The project that a request is about: of the path, of the record in the path, or of the body."""
    ident = s.values.get("projectId") or s.attempt.member("projectId")
    target = s.target
    if target is not None and "projectId" in target.public:
        ident = target.public["projectId"]
    return None if ident is None else s.store.projects.open(str(ident).lower())


def plan_of(s: Situation) -> Row | None:
    return s.store.plans.open(str(s.values.get("planId") or s.attempt.member("planId")).lower())


# -- calls that come first


def active_project(s: Situation) -> Iterator[Attempt]:
    """An order for an inactive project: activate it, or order from another one."""
    project = project_of(s)
    if project is not None:
        yield from s.after("Only an active project takes orders.", *_moves(s, project, "active"))
    yield from another_record(s)


def possible_move(s: Situation) -> Iterator[Attempt]:
    """A project's move: the calls that lead there, or no move."""
    project = s.target
    if project is None or "projectId" not in s.values:
        return
    lifecycle = s.copy.rules.lifecycles["Project"]
    sent = s.attempt.member("status")
    wanted = next((m.to for m in lifecycle.moves if s.operation.id in m.by), None) if sent is None else sent
    is_now = project.public["status"]
    between = way(lifecycle, is_now, str(wanted))[1:-1]
    if between:
        yield from s.after(f"Reaching it from {is_now} takes several moves.", *_moves(s, project, between[-1]))
    if sent is not None:
        yield s.attempt.with_member(["status"], is_now, "The status stays as it is.")


def _moves(s: Situation, project: Row, to: str) -> list[Question | None]:
    """The calls that bring a project to a state; none that works where there is no way."""
    lifecycle = s.copy.rules.lifecycles["Project"]
    calls: list[Question | None] = []
    for from_, then in pairwise(way(lifecycle, project.public["status"], to)):
        found = lifecycle.find(from_, then)
        known = (s.document.operations.get(name) for name in (found.by if found else ()))
        action = next((operation.id for operation in known if operation and not operation.body_required), "")
        calls.append(s.call(action, {"projectId": project.id}))
    return calls or [None]


def changed_plan(s: Situation) -> Iterator[Attempt]:
    """Another payment method, a change of the plan that comes first, or another plan."""
    plan, methods = plan_of(s), list[str]()
    if s.refusal.code == "plan_not_active":
        changes: dict[str, Any] = {"status": "active"}
    elif s.refusal.code == "plan_sold_out":
        changes = {"max_subscribers": None}
    else:
        methods = plan.public["payment_methods"] if plan is not None else []
        changes = {"payment_methods": [*methods, s.attempt.member("paymentMethod") or "pix"]}
    if s.operation.id == "createOrder":
        for method in methods:
            yield s.attempt.with_member(["paymentMethod"], method, "The plan accepts this method.")
    if plan is not None:
        yield from s.after("The plan must allow this order.", s.call("updatePlan", {"planId": plan.id}, changes))
    yield from another_record(s)


def refundable_order(s: Situation) -> Iterator[Attempt]:
    """An open order is paid first, and a dispute won."""
    target, lifecycle = s.target, s.copy.rules.lifecycles["Order"]
    if target is None:
        return
    path, status = f"{CONTROL}/orders/{target.id}", target.public["status"]
    if status in lifecycle.sets["payable"]:
        yield from s.after("Only a paid order is refunded.", Question("POST", f"{path}/pay"))
    elif "resolve_dispute" in lifecycle.controls(status):
        headers = {"content-type": "application/json"}
        call = Question("POST", f"{path}/dispute/resolve", "", headers, b'{"outcome":"won"}')
        yield from s.after("A disputed order is refunded once the dispute is won.", call)


# -- other values


def kept_members(s: Situation) -> Iterator[Attempt]:
    """A plan in use keeps what its holders have bought."""
    body, plan = s.attempt.body, s.target
    fields = [entry["field"] for entry in s.refusal.details if isinstance(body, dict) and entry["field"] in body]
    if not fields or plan is None:
        return
    if body.keys() - set(fields):
        yield s.attempt.without_members(fields, "It is fixed while there are subscribers.")
    kept = {name: plan.public[name] for name in fields}
    yield s.attempt.with_body(body | kept, dict.fromkeys((f"body.{name}" for name in kept), "It stays as it is."))


def payable_order(s: Situation) -> Iterator[Attempt]:
    if s.field in ("amount", "paid_at"):
        yield s.attempt.without_members([s.field], "Without it the payment fits the order.")
    if s.target is not None and can_be_late(s.target.public, s.copy.clock.now):
        yield s.attempt.with_member(["late"], True, "A boleto that has expired can be paid late.")


def smaller_refund(s: Situation) -> Iterator[Attempt]:
    yield s.attempt.without_members(["amount"], "Without an amount all that is left is refunded.")


def failure_of_method(s: Situation) -> Iterator[Attempt]:
    if s.target is not None:
        code = DEFAULT_FAILURE[s.target.public["paymentMethod"]]
        yield s.attempt.with_member(["code"], code, "Payments of this method fail with it.")


def total_of_items(s: Situation) -> Iterator[Attempt]:
    total = items_cents(s.attempt.member("items")) / 100
    yield s.attempt.with_member(["totalAmount"], total, "The items add up to this.")


def another_key(s: Situation) -> Iterator[Attempt]:
    asked = s.attempt.question
    used = asked.headers.get("idempotency-key", "").strip('"')
    keys = (f"{used[:240]}-{number}" for number in count(2))
    free = next(key for key in keys if s.copy.replies.get((s.merchant_id, asked.method, asked.path, key)) is None)
    yield s.attempt.with_header("idempotency-key", free, "The key is new.")


def agreeing_type(s: Situation) -> Iterator[Attempt]:
    base = ["customer"] if s.attempt.member("customer") is not None else []
    target = s.target
    document = s.attempt.member(*base, "document") or (target.public["document"] if target else "")
    made = s.attempt
    for name, value in zip(("document_type", "type"), infer(str(document)), strict=True):
        if target is not None or made.member(*base, name) is not None:
            made = made.with_member([*base, name], value, "It follows from the document.")
    yield made


def later_expiry(s: Situation) -> Iterator[Attempt]:
    until = iso(s.copy.clock.now + _YEAR)
    yield s.attempt.with_member(["expires_at"], until, "The key has expired. An active key needs a later expiry.")


def free_value(s: Situation) -> Iterator[Attempt]:
    """409 of a unique key: a similar value that no record has."""
    for table in s.store.tables.values():
        for key in s.document.unique.get(table.spec.schema, ()):
            if key.code == s.refusal.code and s.operation.id.endswith(table.spec.schema) and key.name in _VARIANTS:
                known = s.target.public if s.target else {"projectId": None}
                made = _unused(table, key, known | s.attempt.body)
                yield s.attempt.with_member([key.name], made, "No other record has this value.")


def _unused(table: Table, key: UniqueKey, body: dict[str, Any]) -> str:
    """A value for the member of a unique key that is like the one in a body, and that no record has."""
    ids = {key.scope: str(body[key.scope]).lower()} if key.scope and body.get(key.scope) else {}
    variants = (_VARIANTS[key.name](str(body[key.name]), number) for number in count(2))
    return next(made for made in variants if table.is_free(key.name, body | ids | {key.name: made}))


def _document(like: str, number: int) -> str:
    """A valid document of the same kind."""
    sent = normalise(like)
    digits = f"{int.from_bytes(sha256(f'{sent}/{number}'.encode()).digest()[:8], 'big'):020d}"
    if len(sent) == 14:
        return cnpj_with_check_digits(digits[:8] + "0001")
    return cpf_with_check_digits(digits[:9]) if len(sent) == 11 else "X" + digits[:8]


_VARIANTS: Mapping[str, Callable[[str, int], str]] = {
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
    "metadata_key_invalid": Kind(CONTRACT, "A key of a free map has 1 to 64 characters and no NUL.", keys_that_fit),
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
    "document_type_conflict": Kind(RULE, "document_type and type agree with the document.", agreeing_type),
    "api_key_expired": Kind(RULE, "An expired API key cannot be active.", later_expiry),
    "invalid_state_transition": Kind(RULE, _STATE, possible_move),
    "project_not_active": Kind(RULE, "Only an active project takes orders.", active_project),
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
        kept_members,
    ),
    "payment_method_not_allowed": Kind(RULE, "An order is paid by one of its plan's payment_methods.", changed_plan),
    "webhook_limit": Kind(RULE, "A merchant has at most 20 webhooks.", None, False),
    "webhook_deleted": Kind(RULE, "A delivery is sent only if its webhook exists."),
    "log_not_retryable": Kind(RULE, "A cancelled delivery is not sent again."),
    "idempotency_key_reused": Kind(RULE, "An Idempotency-Key belongs to one request.", another_key),
    "step_not_kept": Kind(RULE, "Only a state that is stored can be read or restored."),
    "idempotency_in_progress": Kind(RULE, "One request at a time is processed with an Idempotency-Key."),
    # what the control surface does to orders
    "order_already_paid": Kind(RULE, "An order can be paid once.", payable_order),
    "order_not_payable": Kind(RULE, "Only an open order can be paid, in full and before it expires.", payable_order),
    "order_not_refundable": Kind(RULE, "Only a paid order can be refunded.", refundable_order),
    "refund_exceeds_amount": Kind(RULE, "No more is refunded than was paid.", smaller_refund),
    "refund_window_closed": Kind(RULE, "A payment can be refunded within 90 days.", refundable_order),
    "failure_code_not_applicable": Kind(RULE, "A payment fails with a code of its payment method.", failure_of_method),
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
