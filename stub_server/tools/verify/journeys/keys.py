"""An API key opens what it says, and as long as it says so."""

from asyncio import sleep
from typing import Any

from ....core.clock import SECOND, iso
from ....core.record import Body
from ..catalogue import Resource, member_of, pointer_of, record_of
from ..comparing import instant_of
from ..probes import Seen
from ..walking import Walk

_VALID = 3.0  # seconds for which a key is valid
_ADDRESSES = ["203.0.113.9", "127.0.0.10"]
"""Those of other machines. One begins as this machine's."""


async def expires(walk: Walk, keys: Resource) -> None:
    """A key that was valid for some seconds is refused after them, by the clock of the backend."""
    seen = await _make(walk, keys)
    record = record_of(seen.target.json())
    now = instant_of(record.get("createdAt", record.get("created_at")))
    if now is not None:
        await _make(walk, keys, expires_at=iso(int((now + _VALID) * SECOND)))
        await sleep(_VALID + 1)
        at = member_of(keys.create, "expires_at")
        await _use(walk, keys, "a key that has expired", at, about=keys.create, expects=401)


async def limited(walk: Walk, keys: Resource) -> None:
    """A key for other addresses is refused."""
    await _make(walk, keys, allowed_ips=_ADDRESSES)
    learns = f"a key for {' and '.join(_ADDRESSES)} alone"
    at = member_of(keys.create, "allowed_ips")
    await _use(walk, keys, learns, at, about=keys.create, expects=403)


async def loses(walk: Walk, keys: Resource) -> None:
    """What an update or a deletion takes from a key is gone, also if the key was used before."""
    kept = [each for each in walk.assignable() if each != "projects:read"]
    for changed, learns, body, status in (
        (keys.update, "a key that has lost projects:read", Body(scopes=kept), 403),
        (keys.update, "a key that was switched off", Body(is_active=False), 401),
        (keys.delete, "a key that was deleted", Body(), 401),
    ):
        if walk.may(changed):
            await _make(walk, keys)
            await _use(walk, keys, "a key with every scope", group="accepts")
            at = member_of(changed, *body) if body else pointer_of(changed)
            seen = await walk.write(changed, body or None, "a key that was used", at)
            if seen.both_accept:
                await _use(walk, keys, learns, at, about=changed, expects=status)


async def _make(walk: Walk, keys: Resource, **more: Any) -> Seen:
    """Make a key with every scope."""
    return await walk.make(keys, scopes=walk.assignable(), **more)


async def _use(walk: Walk, keys: Resource, learns: str, pointer: str = "", **more: Any) -> None:
    """Read with the key."""
    operation = walk.document.operations["listProjects"]
    more = {"group": "rejects", "suspect": "auth", **more}
    credential = walk.secret(keys.role)
    await walk.ask(operation, learns=learns, pointer=pointer, credential=credential, **more)
