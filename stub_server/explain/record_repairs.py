"""Repairs of requests whose values conflict with stored records: free values, and records that exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import count
from types import MappingProxyType
from typing import Any

from ..domain.documents import cnpj_with_check_digits, cpf_with_check_digits, infer, normalise
from ..domain.orders import items_cents
from ..http.inside import Question
from ..kernel.clock import DAY, iso
from ..kernel.ids import Cutter
from ..kernel.record import Row, UniqueKey
from ..store.table import Table
from .attempt import LOOKED_AT, Attempt, Situation
from .contract_repairs import example_of
from .mending import Mending, Unmendable

_TRIED = 4  # records
_CREATING = {
    "projects": "createProject",
    "plans": "createPlan",
    "products": "createProduct",
    "customers": "createCustomer",
    "webhooks": "createWebhook",
    "api_keys": "createApiKey",
}
"""The operations that create the record of a table; its id is the first new one."""
_ITEM = re.compile(r"([A-Za-z_]+)\[[0-9]+\]").fullmatch
_REFERENCE = "No such record exists; this one fits."
_YEAR = 365 * DAY


def another_reference(s: Situation) -> Iterator[Attempt]:
    """409 `reference_not_found`: a record that exists where the body refers to none."""
    item = _ITEM(s.field)
    name = item[1] if item is not None else s.field
    if item is not None:
        yield from _items(s, name)
    elif name == "planId":
        yield from _plans(s)
    elif name == "projectId":
        yield from _projects(s)


def _items(s: Situation, name: str) -> Iterator[Attempt]:
    """A list of ids without those that do not exist; where none is left, with one that does."""
    table = s.store.plans if name == "planIds" else s.store.projects
    project_id = None
    if table is s.store.plans:
        target = s.target
        project_id = str(s.attempt.member("projectId") or (target and target.public["projectId"])).lower()

    def exists(ident: str) -> bool:
        row = table.peek(ident.lower())
        return row is not None and project_id in (None, row.get("projectId"))

    listed = list(s.attempt.member(name) or ())
    kept = [ident for ident in listed if exists(ident)]
    others = s.newest(table, 1) if project_id is None else s.newest(table, 1, projectId=project_id)
    if not kept and others:
        yield s.attempt.with_member([name], [others[0].id], _REFERENCE)
    yield s.attempt.with_member([name], kept, "Of these, the records exist.")


def _projects(s: Situation) -> Iterator[Attempt]:
    """The project of the plan that the body names, else a live one, with plans where a plan is needed."""
    for row in _buyable_projects(s)[:_TRIED]:
        yield s.attempt.with_member(["projectId"], row.id, _REFERENCE)
    for ident, call in made(s, s.store.projects):
        for attempt in s.after("No project exists.", call):
            yield attempt.with_member(["projectId"], ident, _REFERENCE)


def _plans(s: Situation) -> Iterator[Attempt]:
    """A plan of the project, else of another one."""
    project_id = str(s.attempt.member("projectId")).lower()
    for row in sold(s, project_id)[:_TRIED]:
        yield s.attempt.with_member(["planId"], row.id, _REFERENCE)
    known = s.store.plans.open(str(s.attempt.member("planId")).lower())
    if known is not None:
        yield s.attempt.with_member(["projectId"], known.public["projectId"], "It is the project of the plan.")
    for ident, call in made(s, s.store.plans, projectId=project_id):
        for attempt in s.after("The project has no plan that is sold.", call):
            yield attempt.with_member(["planId"], ident, _REFERENCE)


def _buyable_projects(s: Situation) -> list[Row]:
    """Live projects, first the one of the plan that the body names, then those that sell."""
    plan = s.store.plans.peek(str(s.attempt.member("planId")).lower())
    rows = [row for row in s.newest(s.store.projects) if row.public["status"] != "archived"]
    needs_plan = s.attempt.member("planId") is not None

    def rank(row: Row) -> tuple[bool, bool, bool]:
        is_its_own = plan is not None and plan["projectId"] == row.id
        return not is_its_own, row.public["status"] != "active", needs_plan and not sold(s, row.id)

    return sorted(rows, key=rank)


def sold(s: Situation, project_id: str) -> list[Row]:
    """The plans of a project, first those that can be bought as the body asks."""
    method = s.attempt.member("paymentMethod") or "pix"

    def rank(row: Row) -> tuple[bool, bool, bool, bool]:
        plan = row.public
        return (
            plan["status"] != "active",
            method not in plan["payment_methods"],
            plan["amount"] != s.attempt.member("totalAmount"),
            plan["max_subscribers"] is not None,
        )

    return sorted(s.newest(s.store.plans, projectId=project_id), key=rank)


def made(s: Situation, table: Table, **given: Any) -> Iterable[tuple[str, Question]]:
    """A call that makes a record, and the id that it will have: ids follow from the position of the sandbox."""
    operation = s.document.operations.get(_CREATING.get(table.name, ""))
    if operation is None:
        return
    example = example_of(operation, s.mender.resolve)
    body = {**(example if isinstance(example, dict) else {}), **given}
    try:
        body = Mending(s.mender, s.now, {}).mend(operation.body, body, "body", example)
    except Unmendable:
        return
    if "projectId" in body and "projectId" not in given:
        projects = s.newest(s.store.projects, LOOKED_AT)
        if table.name == "webhooks":
            del body["projectId"]
        elif projects:
            body["projectId"] = projects[0].id
    call = s.call(operation.id, {}, _unlike_others(s, table, body))
    if call is not None:
        yield Cutter(s.copy.ids).uuid(), call


def _unlike_others(s: Situation, table: Table, body: dict[str, Any]) -> dict[str, Any]:
    """The body of a new record with values that no other one has, and without references that it can do without."""
    made = {name: value for name, value in body.items() if name != "planIds"}
    for key in s.document.unique.get(table.spec.schema, ()):
        made |= {key.name: _unused(table, key, made)} if key.name in made else {}
    return made | ({"status": "active"} if table.name == "projects" else {})


def free_value(s: Situation) -> Iterator[Attempt]:
    """409 of a unique key: a similar value that no record has."""
    for table in s.store.tables.values():
        for key in s.document.unique.get(table.spec.schema, ()):
            if key.code == s.answer.code and s.operation.id.endswith(table.spec.schema) and key.name in _VARIANTS:
                known = s.target.public if s.target else {"projectId": None}
                made = _unused(table, key, known | s.attempt.body)
                yield s.attempt.with_member([key.name], made, "No other record has this value.")


def total_of_items(s: Situation) -> Iterator[Attempt]:
    """The total that the items add up to."""
    total = items_cents(s.attempt.member("items")) / 100
    yield s.attempt.with_member(["totalAmount"], total, "The items add up to this.")


def another_key(s: Situation) -> Iterator[Attempt]:
    """An Idempotency-Key that was not used for this path."""
    asked = s.attempt.question
    used = asked.headers.get("idempotency-key", "").strip('"')
    keys = (f"{used[:240]}-{number}" for number in count(2))
    free = next(key for key in keys if s.copy.replies.get((s.merchant_id, asked.method, asked.path, key)) is None)
    yield s.attempt.with_header("idempotency-key", free, "The key is new.")


def agreeing_type(s: Situation) -> Iterator[Attempt]:
    """Types that agree with the document."""
    base = ["customer"] if "customer" in (s.attempt.body or {}) else []
    target = s.target
    document = s.attempt.member(*base, "document") or (target.public["document"] if target else "")
    kind, holder = infer(str(document))
    made = s.attempt
    for name, value in (("document_type", kind), ("type", holder)):
        if target is not None or made.member(*base, name) is not None:
            made = made.with_member([*base, name], value, "It follows from the document.")
    yield made


def later_expiry(s: Situation) -> Iterator[Attempt]:
    """An API key is switched on with an end that is still to come."""
    until = iso(s.copy.clock.now + _YEAR)
    yield s.attempt.with_member(["expires_at"], until, "The key has expired: it needs a later end to be active.")


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


_VARIANTS: Mapping[str, Callable[[str, int], str]] = MappingProxyType(
    {
        "document": _document,
        "name": lambda like, number: f"{like[:110]} {number}",
        "sku": lambda like, number: f"{like[:58]}-{number}",
        "url": lambda like, number: f"{like[:2_000]}{'&' if '?' in like else '?'}receiver={number}",
    }
)
"""Values that are like another one, by the member of the unique key."""
