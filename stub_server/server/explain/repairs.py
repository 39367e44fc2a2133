"""The nearest request that succeeds: what refuses it names the repair that makes the next attempt.

A repair changes the request of an attempt; one that changes nothing has no advice.
The method and the record in the path stay as they were sent, and no repair switches off what the
request did not.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy

from ...contract.document import JSON
from ...core.record import Body, Row
from ...domain.orders import items_cents
from ..layers.shapes import shape_of
from ..request import CONTROL
from .attempt import Attempt, changes
from .mending import at, steps
from .states import needed

MOST = 8  # refusals that are repaired for one explanation


async def nearest(s: Attempt) -> bool:
    """Repair the request until it succeeds in the copy of the sandbox; whether that
    was possible.
    """
    for _ in range(MOST):
        refusal = await s.ask(s.question(s.request))
        if refusal is None:
            return True
        s.refusal = refusal
        given, made_before = deepcopy(s.request), len(s.before)
        REPAIRS.get(refusal.code, without_it)(s)
        if "body" in s.request:
            s.request["header"].setdefault("Content-Type", JSON)
        said = {f"{each['in']}.{each['field']}": each["message"] for each in refusal.details}
        for place, *_ in changes(given, s.request):
            s.reasons.setdefault(place, said.get(place, refusal.message))
        if s.request == given and len(s.before) == made_before:
            return False
        for call, _ in s.before[made_before:]:
            if await s.ask(call) is not None:
                return False
    return False


# -- what the contract rejects: route, media type, JSON, parameters and body


def another_route(s: Attempt) -> None:
    """404: the most similar path.

    No other is tried: after "active" for "activate" would come "archive".
    """
    method = s.request["method"]
    near = s.routing.nearest(method, s.request["path"])
    if near is None or near[0] != method or "{" in near[1] or near[1].startswith(CONTROL):
        return
    s.request["path"] = near[1]


def as_json(s: Attempt) -> None:
    """400 and 415: the body declared as JSON; one that is none is replaced by the
    contract's example.
    """
    s.request["header"].pop("Content-Type", None)
    if isinstance(s.request.get("body"), bytes):
        s.request["body"] = _harmless_example(s)


def mended(s: Attempt) -> None:
    """422: query, headers and body as the contract has them, all violations at once."""
    example = {"body": _harmless_example(s)}
    places = {(each["in"], each["field"]): each for each in s.refusal.details}  # each once
    for each in sorted(places.values(), key=lambda each: "unknown" not in each["code"]):
        s.mender.mend(shape_of(s.operation), s.request, each, s.later, example)


def _harmless_example(s: Attempt) -> Body:
    """The contract's example, where it would switch something off with what keeps it on."""
    examples = s.document.examples(s.operation.raw.get("requestBody"))
    example: Body = deepcopy(examples[0]) if examples else {}
    for name, value in (("status", "active"), ("is_active", True), ("expires_at", s.later)):
        if name in example or name in s.members:
            example[name] = value
    return example


# -- what the rules refuse: with another record, after calls that come first, or without it


def another_record(s: Attempt) -> None:
    """A record that exists, in place of the one that the body names; a product may be of no plan.

    What keeps it from being used is the next refusal.
    """
    if not s.refusal.details:
        return
    name = s.refusal.details[0]["field"].partition("[")[0]
    given = s.members.get("projectId")
    projects = [row.id for row in _usable(s, "projects")]
    if name == "planIds":
        s.members[name] = []
    elif name == "allowed_projects":
        s.members[name] = projects[:1]
    elif "planId" in s.members:
        # one of the same project, else of the newest one
        projects.sort(key=lambda ident: ident != given)
        plans = [row for row in _usable(s, "plans") if row.public["projectId"] in projects]
        plans.sort(key=lambda row: (_is_inactive(row), projects.index(row.public["projectId"])))
        for plan in plans[:1]:
            s.members.update(projectId=plan.public["projectId"], planId=plan.id)
    elif "projectId" in s.members and projects:
        s.members["projectId"] = projects[0]


def _usable(s: Attempt, table: str) -> list[Row]:
    """The newest records that are not archived, active ones first."""
    rows = [row for row in s.newest(table) if row.status != "archived"]
    return sorted(rows, key=_is_inactive)


def _is_inactive(row: Row) -> bool:
    return bool(row.status != "active")


def first_moved(s: Attempt) -> None:
    """After the project is activated, with the state as it is, or in another project.

    Activation is the only move that a request makes first: it ends nothing.
    """
    found = needed(s, s.refusal.code)
    if found is not None and "active" in found.needed and "active" in dict(found.moves):
        s.call_first("activateProject", found.id)
    elif s.refusal.code == "project_not_active":
        another_record(s)
    elif found is not None and "status" in s.members:
        s.members["status"] = found.is_now


def changed_plan(s: Attempt) -> None:
    """The order by another payment method, or after a change of its plan."""
    plan = needed(s, s.refusal.code)
    if plan is None:
        return
    if s.refusal.code == "plan_not_active":
        s.call_first("updatePlan", plan.id, status="active")
    elif s.refusal.code == "plan_sold_out":
        s.call_first("updatePlan", plan.id, max_subscribers=None)
    elif s.operation.id == "createOrder":
        s.members["paymentMethod"] = plan.is_now[0]
    else:
        s.call_first("updatePlan", plan.id, payment_methods=[*plan.is_now, "pix"])


def total_of_items(s: Attempt) -> None:
    """409 of an order whose total is another one than that of its items: the sum."""
    s.members["totalAmount"] = items_cents(s.members["items"]) / 100


def later_expiry(s: Attempt) -> None:
    """409 of an API key that has expired: with a later expiry."""
    s.members["expires_at"] = s.later


def without_it(s: Attempt) -> None:
    """The request without the header, or the members of its body, that the refusal names; a value
    of a unique key becomes one like it.
    """
    for each in s.refusal.details:
        if each["code"].startswith("duplicate_"):
            _make_unique(s, each["field"])
            continue
        *above, last = [each["in"], *steps(each["field"])]
        holder = at(s.request, above)
        if isinstance(holder, dict):
            holder.pop(last, None)


def _make_unique(s: Attempt, name: str) -> None:
    """Replace a value by one like it. A document gets its check digits from the next repair."""
    number = s.copy.log.number  # which grows with each record that is made
    like = s.members.get(name) or (s.target and s.target.public[name])
    s.members[name] = f"{number:09}00" if name == "document" else f"{like}/{number}"


REPAIRS: Mapping[str, Callable[[Attempt], None]] = {
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
