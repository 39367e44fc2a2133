"""What every operation refuses: credentials, ids, and paths and methods that the contract
does not have.
"""

from typing import Any

from ....contract.document import Operation
from ..catalogue import Resource, path_names, pointer_of, with_leaves
from ..probes import (
    NONE,
    WRONG,
    Builder,
    Journey,
    Probe,
    costs,
    placeholder,
    roles_in,
)
from ..variants import UNKNOWN_ID


def refuses(builder: Builder, operation: Operation, keys: Resource | None) -> Journey:
    """Credentials and ids that are refused; also API keys, if they can be made."""
    names = path_names(operation)
    unknown = dict.fromkeys(names, UNKNOWN_ID)
    body = with_leaves(builder.body(operation), lambda it: UNKNOWN_ID if [*roles_in(it)] else it)
    if costs(operation) and not builder.may(operation):
        body = b"[]"  # a backend that accepts this body creates no record from it

    def probe(learns: str, *steps: str | int, **more: Any) -> Probe:
        more = {"path": builder.path(operation, **unknown), "body": body, **more}
        return builder.probe(operation, "rejects", learns, pointer_of(operation, *steps), **more)

    if operation.scheme is not None:
        yield probe("no credential", "security", credential=NONE, suspect="auth")
        yield probe("an invalid credential", "security", credential=WRONG, suspect="auth")
    if not builder.may(operation):
        return
    if names:
        yield probe("an id that does not exist")
    for name in names:
        if name.endswith("Id"):
            path = builder.path(operation, **{**unknown, name: "verify-no-id"})
            yield probe("a malformed id", path=path)
    if keys is None or not builder.may(keys.create):
        return
    every = builder.assignable()
    if operation.scheme == "jwt":
        yield from builder.ready(keys)
        credential = placeholder(f"{keys.role} secret")
        yield probe("an API key", "security", credential=credential, suspect="auth")
    for number, scope in enumerate(operation.raw.get("x-scopes", ())):
        if scope in every:
            role = f"{keys.role} {every.index(scope)}"
            yield from builder.ready(keys, role, scopes=[each for each in every if each != scope])
            more = {"credential": placeholder(f"{role} secret"), "suspect": "scope"}
            yield probe(f"a key without {scope}", "x-scopes", number, **more)
    project = builder.catalogue.resources.get("projectId")
    if project is None or project not in builder.needs(operation) or operation.scheme == "jwt":
        return
    other, role = f"{project.role} other", f"{keys.role} limited"
    yield from builder.ready(project, other)
    yield from builder.ready(keys, role, scopes=every, allowed_projects=[placeholder(other)])
    more = {"credential": placeholder(f"{role} secret"), "body": builder.body(operation)}
    learns = "a key that is limited to another project"
    yield probe(learns, "security", path=builder.path(operation), **more)
