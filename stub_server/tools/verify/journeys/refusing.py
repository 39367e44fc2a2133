"""What every operation refuses: credentials, ids, and paths and methods that the contract
does not have.
"""

from typing import Any

from ....contract.document import Operation
from ..catalogue import path_names, pointer_of, with_leaves
from ..probes import NONE, WRONG, costs, placeholder, roles_in
from ..variants import UNKNOWN_ID
from ..walking import Walk


async def refuses(walk: Walk, operation: Operation) -> None:
    """Credentials and ids that are refused; also API keys, if they can be made."""
    names = path_names(operation)
    scheme = operation.scheme
    unknown = dict.fromkeys(names, UNKNOWN_ID)
    body = with_leaves(walk.body(operation), lambda it: UNKNOWN_ID if [*roles_in(it)] else it)
    if costs(operation) and not walk.may(operation):
        body = b"[]"  # a backend that accepts this body creates no record from it

    async def tries(learns: str, *steps: str | int, **more: Any) -> None:
        more = {"path": walk.path(operation, **unknown), "body": body, **more}
        await walk.ask(operation, "rejects", learns, pointer_of(operation, *steps), **more)

    if scheme is not None:
        await tries("no credential", "security", credential=NONE, suspect="auth")
        await tries("an invalid credential", "security", credential=WRONG, suspect="auth")
    if not walk.may(operation):
        return
    if names:
        await tries("an id that does not exist")
    for name in names:
        if name.endswith("Id"):
            no_id = unknown | {name: "verify-no-id"}
            await tries("a malformed id", path=walk.path(operation, **no_id))
    keys, project = map(walk.catalogue.resources.get, ("apiKeyId", "projectId"))
    if keys is None or not walk.may(keys.create):
        return
    every = walk.assignable()
    if scheme == "jwt":
        await walk.ready(keys)
        await tries("an API key", "security", credential=walk.secret(keys.role), suspect="auth")
    for number, scope in enumerate(operation.raw.get("x-scopes", ())):
        if scope in every:
            role = f"{keys.role} {every.index(scope)}"
            await walk.ready(keys, role, scopes=[each for each in every if each != scope])
            learns = f"a key without {scope}"
            credential = walk.secret(role)
            await tries(learns, "x-scopes", number, credential=credential, suspect="scope")
    if project is None or project not in walk.needs(operation) or scheme == "jwt":
        return
    other = f"{project.role} other"
    role = f"{keys.role} limited"
    await walk.ready(project, other)
    await walk.ready(keys, role, scopes=every, allowed_projects=[placeholder(other)])
    await tries(
        "a key that is limited to another project",
        "security",
        path=walk.path(operation),
        body=walk.body(operation),
        credential=walk.secret(role),
    )
