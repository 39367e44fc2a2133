"""What the caller's credential opens at the target, asked with requests that change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..contract.document import Operation
from .exchange import Answer, Request, bearer
from .target import TRIES, Away, Target, together

_REFUSED = (401, 403)


@dataclass(slots=True)
class Rights:
    """Whether the credential is an API key, and by operationId why an operation is out of its reach."""

    is_key: bool = False
    closed: dict[str, str] = field(default_factory=dict)


async def rights_of(target: Target, token: str, operations: Sequence[Operation], unknown_id: str) -> Rights:
    """Ask each operation about a record that is nowhere, with a body that none accepts.

    Raises Away, also where the credential is refused everywhere and where no answer is one of an API.
    """
    answers = await together(*(_asked(target, token, operation, unknown_id) for operation in operations))
    statuses = {operation.id: answer.status for operation, answer in zip(operations, answers, strict=True)}
    if set(statuses.values()) == {401}:
        raise Away("it refuses the credential: 401 to every operation")
    if answers and not any(isinstance(answer.json(), dict) for answer in answers):
        raise Away(_foreign(answers[0]))
    of_people = {operation.id for operation in operations if operation.scheme == "jwt"}
    rights = Rights(bool(of_people) and all(statuses[name] in _REFUSED for name in of_people))
    lacking = {scope for o in operations if statuses[o.id] == 403 and o.id not in of_people for scope in o.scopes}
    for operation in operations:
        if operation.scheme == "jwt" and rights.is_key:
            rights.closed[operation.id] = "needs a JWT, and the credential is an API key"
        elif lacking & operation.scopes:
            rights.closed[operation.id] = f"the credential lacks {' or '.join(sorted(lacking & operation.scopes))}"
    return rights


async def _asked(target: Target, token: str, operation: Operation, unknown_id: str) -> Answer:
    path = operation.path
    for parameter in operation.parameters:
        path = path.replace(f"{{{parameter.name}}}", unknown_id)
    headers = bearer(token)
    if operation.method == "GET":
        return await target.send(Request("GET", path, "", headers), TRIES)
    sent = Request(operation.method, path, "", (*headers, ("Content-Type", "application/json")), b"[]")
    return await target.send(sent, TRIES)


def _foreign(answer: Answer) -> str:
    """Why a target is not the API, by one of its answers."""
    if answer.status == 0:
        return f"it answers no operation: {answer.body.decode()}"
    if 300 <= answer.status < 400:
        return f"it redirects every operation ({answer.status}), and redirects are not followed: give its own address"
    return f"it answers no operation with JSON, but with {answer.status}: give the address above /v2"
