"""Rules of projects, their plans and their products: what is stored, and when each can be changed
or deleted.
"""

from ..contract.lifecycles import Lifecycle, Move
from ..core.problem import Conflict, detail
from ..core.record import Body, Row, without
from .lifecycle import move

_UNSHOWN: Body = {  # which answers do not show, as they are where nothing was sent
    "long_description": None,
    "logo_url": None,
    "cover_image": None,
    "website_url": None,
    "business_settings": {},
    "marketing_settings": {},
    "content_settings": {},
    "notification_settings": {},
}
_RHYTHM = ("billing_type", "interval", "interval_count")
COUNTERS = (
    "plans_count",
    "orders_count",
    "total_revenue",
    "total_subscribers",
    "active_subscribers",
)


def new_project(blank: Row, body: Body, creator: str) -> Row:
    """A new project: a draft, unless the request says more."""
    usual = {
        "status": "draft",
        "type": "membership",
        "visibility": "public",
        **dict.fromkeys(COUNTERS, 0),
        "creatorId": creator,
    }
    return blank.changed(usual, _UNSHOWN).changed(*_parts(body))


def _parts(body: Body) -> tuple[Body, Body]:
    """What of a request is shown, and what is not."""
    hidden = {name: value for name, value in body.items() if name in _UNSHOWN}
    return without(body, *hidden), hidden


def changed_project(row: Row, body: Body, lifecycle: Lifecycle) -> tuple[Row, Move | None]:
    """A project after an update, and the move to another status that it is to make, if any.

    Raises Conflict for a change to the content of an archived project, and for an illegal move.
    """
    moved = None
    if "status" in body:
        moved = move(lifecycle, row.status, body["status"])
    content = without(body, "status")
    if content:
        check_open(row.public)
    return row.changed(*_parts(content)), moved


def check_open(project: Body, field: str = "status") -> None:
    """Raises Conflict if the project is archived: it, its plans and its products cannot be changed
    any more.
    """
    if project["status"] == "archived":
        raise Conflict.at(
            field,
            "The project is archived: neither it nor its plans and products can be changed.",
            "project_archived",
            advice="Use another project.",
        )


def check_idle(orders: int, subscriptions: int, late: Row | None) -> None:
    """Raises Conflict if a project with paid or pending orders or running subscriptions is to be
    deleted.

    Or with a `late` order, which has expired and can still be paid.
    """
    if orders or subscriptions:
        message = (
            f"The project has {orders} paid or pending orders and {subscriptions} running"
            " subscriptions. Archive it instead."
        )
    elif late is not None:
        message = (
            f"The boleto of order {late['code']} can still be paid late. Archive the project"
            " instead."
        )
    else:
        return
    raise Conflict.at("projectId", message, "project_has_activity")


# -- plans


def new_plan(blank: Row, body: Body) -> Row:
    """A new plan."""
    # a live counter, calculated whenever the plan is shown
    return _settled(
        blank.changed(body | {"projectId": body["projectId"].lower(), "subscribers_count": 0})
    )


def changed_plan(row: Row, body: Body, running: int) -> Row:
    """A plan after an update.

    Raises Conflict if the rhythm of billing would change while there are `running` subscriptions.
    """
    plan = _settled(row.changed(body))
    changed = [name for name in _RHYTHM if plan[name] != row[name]]
    if changed and running:
        message = (
            f"The plan has running subscriptions ({running}): its {' and '.join(changed)} cannot"
            " change. Create a new plan instead."
        )
        raise Conflict(
            message,
            code="plan_in_use",
            details=[detail(name, "plan_in_use", message) for name in changed],
        )
    return plan


def _settled(row: Row) -> Row:
    """A one-time plan has no trial and no interval; the interval of a recurring one is a
    month by default.
    """
    if row["billing_type"] == "one_time":
        return row.changed({"interval": None, "interval_count": None, "trial_period_days": 0})
    return row.changed(
        {"interval": row["interval"] or "month", "interval_count": row["interval_count"] or 1}
    )


def plan_warnings(wanted: Body) -> tuple[str, ...]:
    """`trial_ignored` for a one-time plan with trial days."""
    if wanted.get("billing_type") == "one_time" and wanted.get("trial_period_days"):
        return ("trial_ignored",)
    return ()


def check_unused(running: int, pending: int, late: Row | None) -> None:
    """Raises Conflict if a plan that has running subscriptions or pending orders is to be deleted.

    Or a `late` order, which has expired and can still be paid.
    """
    if running or pending:
        message = f"Running subscriptions of the plan: {running}; pending orders: {pending}."
    elif late is not None:
        message = f"The boleto of order {late['code']} can still be paid late."
    else:
        return
    raise Conflict(
        message, advice="To stop selling it, set its status to inactive.", code="plan_in_use"
    )


# -- products


def new_product(blank: Row, body: Body) -> Row:
    """A new product, whose planIds are still to be checked."""
    return blank.changed(body | {"projectId": body["projectId"].lower()})
