"""Rules of projects: states, write-only members, and when a project can be changed or deleted."""

from ..contract.document import Lifecycle, Move
from ..kernel.problem import Conflict, detail
from ..kernel.record import Body, Row
from .lifecycle import move

WRITE_ONLY = (
    "long_description",
    "logo_url",
    "cover_image",
    "website_url",
    "business_settings",
    "marketing_settings",
    "content_settings",
    "notification_settings",
)
_MAPS = frozenset(name for name in WRITE_ONLY if name.endswith("_settings"))
COUNTERS = ("plans_count", "orders_count", "total_revenue", "total_subscribers", "active_subscribers")


def new_project(body: Body, defaults: Body, ident: str, creator: str, now: str) -> tuple[Body, Body]:
    """A new project's public and hidden parts."""
    hidden = {name: body.get(name, {} if name in _MAPS else None) for name in WRITE_ONLY}
    shown = {name: value for name, value in body.items() if name not in hidden}
    public: Body = defaults | {
        "id": ident,
        "status": "draft",
        "type": "membership",
        "visibility": "public",
        **dict.fromkeys(COUNTERS, 0),
        "creatorId": creator,
        "createdAt": now,
        **shown,
    }
    return public, hidden


def changed_project(row: Row, body: Body, lifecycle: Lifecycle) -> tuple[Body, Body, Move | None]:
    """A project after an update, and its move to another status, if it moves.

    Raises Conflict for a change to the content of an archived project, and for an illegal move.
    """
    to = body.get("status")
    moved = None if to is None else move(lifecycle, row.public["status"], to)
    content = body.keys() - {"status"}
    if content:
        check_open(row.public)
    hidden = row.hidden | {name: value for name, value in body.items() if name in WRITE_ONLY}
    public = row.public | {name: value for name, value in body.items() if name not in WRITE_ONLY}
    return public, hidden, moved


def check_open(project: Body, field: str = "status") -> None:
    """Raises Conflict if the project is archived: it, its plans and its products cannot be changed any more."""
    if project["status"] == "archived":
        message = "The project is archived: neither it nor its plans and products can be changed."
        raise Conflict(message, code="project_archived", details=[detail(field, "project_archived", message)])


def check_idle(orders: int, subscriptions: int) -> None:
    """Raises Conflict if a project with paid or pending orders or running subscriptions is to be deleted."""
    if orders or subscriptions:
        message = (
            f"The project has {orders} paid or pending orders and {subscriptions} running subscriptions. "
            "Archive it instead."
        )
        raise Conflict(
            message, code="project_has_activity", details=[detail("projectId", "project_has_activity", message)]
        )
