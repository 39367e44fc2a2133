"""An API key opens what it says, and as long as it says so."""

from asyncio import sleep
from typing import Any

from ....core.clock import SECOND, iso
from ..catalogue import Resource, member_of, pointer_of, record_of
from ..comparing import instant_of
from ..probes import Seen, placeholder
from ..walking import Walk

_TICK, _VALID = 1.1, 3.0  # seconds in which each clock goes on, and for which a key is valid
_ADDRESSES = ["203.0.113.9", "127.0.0.10"]
"""Those of other machines. One begins as this machine's."""


async def expires(walk: Walk, keys: Resource) -> None:
    """A key that was valid for some seconds is refused after them, by the clock of the backend."""
    before = _created(await _make(walk, keys, "before"))
    await sleep(_TICK)
    now = _created(await _make(walk, keys, "now"))
    if now <= before:
        return  # its clock stands still
    await _make(walk, keys, "ended", expires_at=iso(int((now + _VALID) * SECOND)))
    await sleep(_VALID + 1)
    at = member_of(keys.create, "expires_at")
    await _use(walk, "ended", "a key that has expired", at, about=keys.create, expects=401)


async def limited(walk: Walk, keys: Resource) -> None:
    """A key for other addresses is refused."""
    await _make(walk, keys, "elsewhere", allowed_ips=_ADDRESSES)
    learns = f"a key for {' and '.join(_ADDRESSES)} alone"
    at = member_of(keys.create, "allowed_ips")
    await _use(walk, "elsewhere", learns, at, about=keys.create, expects=403)


async def loses(walk: Walk, keys: Resource) -> None:
    """What an update or a deletion takes from a key is gone, also if the key was used before."""
    kept = [each for each in walk.assignable() if each != "projects:read"]
    for changed, learns, body, status in (
        (keys.update, "a key that has lost projects:read", {"scopes": kept}, 403),
        (keys.update, "a key that was switched off", {"is_active": False}, 401),
        (keys.delete, "a key that was deleted", None, 401),
    ):
        if not walk.may(changed):
            continue
        await _make(walk, keys, "changed")
        await _use(walk, "changed", "a key with every scope", group="accepts")
        at = pointer_of(changed) if body is None else member_of(changed, *body)
        seen = await walk.ask(
            changed,
            "accepts",
            "a key that was used",
            at,
            path=keys.at(placeholder(_role("changed"))),
            body=body,
        )
        if seen.both_accept:
            await _use(walk, "changed", learns, at, about=changed, expects=status)


def _role(name: str) -> str:
    return f"the api key {name}"


async def _make(walk: Walk, keys: Resource, name: str, **more: Any) -> Seen:
    """Make a key with every scope."""
    return await walk.make(keys, _role(name), scopes=walk.assignable(), **more)


async def _use(
    walk: Walk, name: str, learns: str, pointer: str = "", group: str = "rejects", **more: Any
) -> None:
    """Read with a key."""
    await walk.ask(
        walk.document.operations["listProjects"],
        group,
        learns,
        pointer,
        credential=walk.secret(_role(name)),
        suspect="auth",
        **more,
    )


def _created(seen: Seen) -> float:
    """When the record in an answer was made, in seconds; 0 if it does not say so."""
    record = record_of(seen.target.json())
    return instant_of(record.get("createdAt", record.get("created_at"))) or 0.0
