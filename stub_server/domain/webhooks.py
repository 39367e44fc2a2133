"""Rules of webhooks: what one listens to, which keys sign, and when it is switched off."""

from collections.abc import Collection, Iterable

from ..core.clock import LATEST
from ..core.problem import Conflict
from ..core.record import Body, Row

MOST = 20
KEYS = 10
ABROAD = "abroad"
"""Member of the hidden part: whether a page of another machine sent the address, which then must
not be private.
"""

# -- webhooks


def new_webhook(blank: Row, body: Body, signing_key: str) -> Row:
    """A new webhook; the key is in the hidden part alone."""
    public = _written(body) | {"api_version": "v2", "consecutive_failures": 0}
    return blank.changed(public, {"signing_keys": [{"key": signing_key, "until": None}]})


def changed_webhook(row: Row, body: Body) -> Row:
    """A webhook after an update; switching it on forgets why the service had switched it off."""
    changed = row.changed(_written(body))
    if changed["is_active"] and not row["is_active"]:
        return changed.changed(
            {"disabled_at": None, "disabled_reason": None, "consecutive_failures": 0}
        )
    return changed


def disabled_webhook(row: Row, reason: str, now: str) -> Row:
    """A webhook that the service switches off: `gone` or `too_many_failures`."""
    return row.changed({"is_active": False, "disabled_at": now, "disabled_reason": reason})


def _written(body: Body) -> Body:
    project = body.get("projectId")
    if project is None:
        return body
    return body | {"projectId": project.lower()}


def check_room(count: int) -> None:
    """A merchant has at most 20 webhooks. Raises Conflict."""
    if count >= MOST:
        raise Conflict(
            f"A merchant has at most {MOST} webhooks. Delete one first.", code="webhook_limit"
        )


# -- signing keys


def valid_keys(hidden: Body, now: int) -> list[str]:
    """The keys that sign now, the current one first; `until` is ms and the first instant at which a
    key is retired.
    """
    keys = []
    for entry in reversed(hidden["signing_keys"]):
        if entry["until"] is None or entry["until"] > now:
            keys.append(entry["key"])
    return keys


def rotated(hidden: Body, key: str, now: int, grace_ms: int) -> tuple[Body, int]:
    """The hidden part with a new current key, and when the previous one retires (ms).

    Keys of earlier rotations keep their ends; a header has room for the newest ten.
    """
    until = min(now + grace_ms, LATEST)
    kept = []
    for entry in hidden["signing_keys"]:
        ends = until if entry["until"] is None else entry["until"]
        if ends > now:
            kept.append({"key": entry["key"], "until": ends})
    return hidden | {"signing_keys": [*kept[-(KEYS - 1) :], {"key": key, "until": None}]}, until


# -- what is wanted


def listens(patterns: Collection[str], event_type: str) -> bool:
    """Whether one of the patterns (`*`, `<resource>.*`, a type) names an event type."""
    return (
        "*" in patterns or event_type in patterns or event_type.partition(".")[0] + ".*" in patterns
    )


def subscribers(webhooks: Iterable[Body], event_type: str, project_id: str | None) -> list[Body]:
    """The webhooks that an event is for: by its type, and by its project if they have one."""
    found = []
    for webhook in webhooks:
        if webhook["projectId"] in (None, project_id) and listens(webhook["events"], event_type):
            found.append(webhook)
    return found
