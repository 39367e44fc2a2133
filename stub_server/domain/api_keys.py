"""Rules of API keys: what a key may be given, when it works, and how it ends."""

import hashlib
from collections.abc import Callable, Collection, Iterable
from typing import Any

from ..contract.formats import date_time_ms
from ..kernel.clock import iso
from ..kernel.problem import Conflict, Forbidden, detail, reference_missing
from ..kernel.record import Body, Row


def state(public: Body, now: int) -> str:
    """active, inactive or expired. Expired wins."""
    expires = public["expires_at"]
    if expires is not None and date_time_ms(expires) <= now:
        return "expired"
    return "active" if public["is_active"] else "inactive"


def check_escalation(may: Callable[[str], bool], scopes: Iterable[str]) -> None:
    """Nobody gives away a scope that he does not hold. Raises Forbidden."""
    beyond = sorted(scope for scope in scopes if not may(scope))
    if beyond:
        raise Forbidden(
            f"You do not hold {', '.join(beyond)} yourself and cannot give it to a key.",
            code="scope_escalation",
            details=[detail("scopes", "scope_escalation", scope) for scope in beyond],
        )


def known_projects(asked: Iterable[str], known: Collection[str]) -> list[str]:
    """The projects a key is restricted to, each once, in the order asked for. Raises Missing for an unknown one."""
    projects = list(dict.fromkeys(ident.lower() for ident in asked))
    for index, ident in enumerate(projects):
        if ident not in known:
            raise reference_missing(f"allowed_projects[{index}]", "project")
    return projects


def new_key(
    body: Body, blank: Body, ident: str, public_key: str, private_key: str, projects: list[str], now: int
) -> tuple[Body, Body]:
    """A new key's public and hidden parts; of the private half only the SHA-256 is kept.

    One whose end is not in the future is expired from the start.
    """
    public: Body = blank | {
        "id": ident,
        "public_key": public_key,
        **_written(body),
        "is_active": True,
        "allowed_projects": ",".join(projects),
        "usage_count": 0,
        "last_used_at": None,
        "created_at": iso(now),
    }
    public["is_active"] = state(public, now) == "active"
    hidden = {"digest": hashlib.sha256(private_key.encode()).hexdigest(), "allowed_projects": projects}
    return public, hidden


def changed_key(row: Row, body: Body, projects: list[str] | None, now: int) -> tuple[Body, Body]:
    """The key after an update, switched off if its end has passed. Raises Conflict for activating such a one."""
    public, hidden = row.public | _written(body), row.hidden
    if projects is not None:
        public["allowed_projects"] = ",".join(projects)
        hidden = hidden | {"allowed_projects": projects}
    if body.get("is_active") is True and state(public, now) == "expired":
        message = "An expired key cannot be switched on: send a future expires_at (or null) with is_active."
        raise Conflict(message, code="api_key_expired", details=[detail("is_active", "api_key_expired", message)])
    public["is_active"] = state(public, now) == "active"
    return public, hidden


def _written(body: Body) -> dict[str, Any]:
    """The members of a request as they are stored."""
    written = {name: value for name, value in body.items() if name != "allowed_projects"}
    if "scopes" in written:
        written["scopes"] = sorted(written["scopes"])
    if written.get("expires_at") is not None:
        written["expires_at"] = iso(date_time_ms(written["expires_at"]))
    return written
