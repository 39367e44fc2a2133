"""What the caller's credential opens at the target, asked with requests that change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..contract.document import Operation
from .exchange import Request
from .target import Target

_REFUSED = (401, 403)


class NotAccepted(Exception):
    """The target refuses the credential everywhere."""


@dataclass(slots=True)
class Reach:
    """Whether the credential is an API key, and by operationId why an operation is out of its reach."""

    is_key: bool = False
    closed: dict[str, str] = field(default_factory=dict)


async def reach_of(target: Target, token: str, operations: Sequence[Operation], unknown_id: str) -> Reach:
    """Ask each operation about a record that is nowhere, with a body that none accepts. Raises NotAccepted, Away."""
    told = await asyncio.gather(*(_asked(target, token, operation, unknown_id) for operation in operations))
    statuses = {operation.id: status for operation, status in zip(operations, told, strict=True)}
    if set(told) == {401}:
        raise NotAccepted
    of_people = {operation.id for operation in operations if operation.scheme == "jwt"}
    reach = Reach(bool(of_people) and all(statuses[name] in _REFUSED for name in of_people))
    lacking = {scope for o in operations if statuses[o.id] == 403 and o.id not in of_people for scope in o.scopes}
    for operation in operations:
        if operation.scheme == "jwt" and reach.is_key:
            reach.closed[operation.id] = "needs a JWT, and the credential is an API key"
        elif lacking & operation.scopes:
            reach.closed[operation.id] = f"the credential lacks {' or '.join(sorted(lacking & operation.scopes))}"
    return reach


async def _asked(target: Target, token: str, operation: Operation, unknown_id: str) -> int:
    path = operation.path
    for parameter in operation.parameters:
        path = path.replace(f"{{{parameter.name}}}", unknown_id)
    headers = (("Authorization", f"Bearer {token}"),)
    if operation.method == "GET":
        return (await target.send(Request("GET", path, "", headers))).status
    sent = Request(operation.method, path, "", (*headers, ("Content-Type", "application/json")), b"[]")
    return (await target.send(sent)).status
