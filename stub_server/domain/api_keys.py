"""Rules of API keys: scopes, restrictions, states and expiry."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import sha256

from ..core.clock import iso, parse_iso
from ..core.problem import Conflict, Forbidden, detail
from ..core.record import Body, Row, without

PUBLIC = "pk_sandbox_"
PRIVATE = "sk_sandbox_"
"""How the halves of a key begin."""
May = Callable[[str], bool]
"""Whether a caller has a scope."""
PUBLIC_LENGTH = 24  # characters after that
PRIVATE_LENGTH = 40
_RESTRICTIONS = ("allowed_projects", "allowed_ips", "expires_at", "is_active")


def state(key: Row, now: int) -> str:
    """active, inactive or expired. Expiry comes first."""
    expires = key["expires_at"]
    if expires is not None and parse_iso(expires) <= now:
        return "expired"
    return "active" if key["is_active"] else "inactive"


def warnings(body: Body, now: int) -> tuple[str, ...]:
    """`expires_at_past` for a key that is sent with an end that has come."""
    expires = body.get("expires_at")
    if expires is None or parse_iso(expires) > now:
        return ()
    return ("expires_at_past",)


def check_escalation(may: May, scopes: Iterable[str]) -> None:
    """Raises Forbidden if the caller grants a scope that it does not have."""
    beyond = _beyond(may, scopes)
    if beyond:
        raise Forbidden(
            f"You do not hold {', '.join(beyond)} yourself and cannot give it to a key.",
            code="scope_escalation",
            details=[detail("scopes", "scope_escalation", scope) for scope in beyond],
        )


def _beyond(may: May, scopes: Iterable[str]) -> list[str]:
    """The scopes that a caller does not have."""
    return sorted(scope for scope in scopes if not may(scope))


def check_update(may: May, row: Row, body: Body) -> None:
    """Raises Forbidden if a caller grants scopes, or changes what restricts a key, beyond its own
    scopes.

    Otherwise a caller with few scopes could make a key with many usable. To switch a key off needs
    none.
    """
    if "scopes" in body:
        check_escalation(may, body["scopes"])
        return
    # is_active: false, which switches a key off, is no change here
    changed = [name for name in _RESTRICTIONS if body.get(name, False) is not False]
    missing = _beyond(may, row["scopes"])
    if changed and missing:
        beyond = ", ".join(missing)
        raise Forbidden(
            f"This key has {beyond}, which you do not hold yourself, so you cannot change its"
            " restrictions.",
            code="scope_escalation",
            details=[
                detail(name, "scope_escalation", f"The key has {beyond}.") for name in changed
            ],
        )


@lru_cache(maxsize=64)  # two layers ask it of every request, with what it sends
def digest(private_key: str) -> str:
    """The SHA-256 of a private key, which is stored instead of the key."""
    return sha256(private_key.encode()).hexdigest()


def new_key(blank: Row, body: Body, halves: tuple[str, str], projects: list[str], now: int) -> Row:
    """A new key; of the private one of its halves only the SHA-256 is stored.

    A key whose `expires_at` is not in the future is inactive from the start.
    """
    public_key, private_key = halves
    public: Body = {
        "public_key": public_key,
        **_written(body),
        "is_active": True,
        "allowed_projects": ",".join(projects),
        "usage_count": 0,
    }
    hidden = {"digest": digest(private_key), "allowed_projects": projects}
    return _settled(blank.changed(public, hidden), now)


def changed_key(row: Row, body: Body, projects: list[str] | None, now: int) -> Row:
    """The key after an update, inactive if it has expired.

    Raises Conflict for activating an expired key.
    """
    row = row.changed(_written(body))
    if projects is not None:
        row = row.changed({"allowed_projects": ",".join(projects)}, {"allowed_projects": projects})
    if body.get("is_active") is True and state(row, now) == "expired":
        raise Conflict.at(
            "is_active",
            "An expired key cannot be switched on: send a future expires_at (or null) with"
            " is_active.",
            "api_key_expired",
        )
    return _settled(row, now)


def _settled(row: Row, now: int) -> Row:
    """A key is active until it is switched off or expires."""
    return row.changed({"is_active": state(row, now) == "active"})


def _written(body: Body) -> Body:
    """The members of a request as they are stored."""
    written = without(body, "allowed_projects")
    if "scopes" in written:
        written["scopes"] = sorted(written["scopes"])
    if written.get("expires_at") is not None:
        written["expires_at"] = iso(parse_iso(written["expires_at"]))
    return written
