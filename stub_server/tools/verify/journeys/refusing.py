"""What every operation refuses: credentials, ids, and paths and methods that the contract
does not have.
"""

from collections.abc import Generator, Sequence
from typing import Any

from ....contract.document import Operation
from ....core.record import Body
from ..catalogue import path_names, pointer_of
from ..probes import (
    NONE,
    SETUP,
    UNKNOWN_ID,
    WRONG,
    Aim,
    Asked,
    Builder,
    Journey,
    Probe,
    Seen,
    costs,
    placeholder,
    roles_in,
    without_role,
)


def refuses(builder: Builder, operation: Operation, keys: dict[str, str]) -> Journey:
    """Credentials and ids that are refused.

    `keys` are roles of API keys by the scope that each lacks.
    """
    names = path_names(operation)
    unknown = dict.fromkeys(names, UNKNOWN_ID)
    body = builder.body(operation)
    for role in set(roles_in(body)):
        body = without_role(body, role)
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
    if operation.scheme == "jwt" and keys:
        yield probe("an API key", "security", credential=next(iter(keys.values())), suspect="auth")
    for number, scope in enumerate(operation.raw.get("x-scopes", ())):
        if scope in keys:
            yield probe(
                f"a key without {scope}",
                "x-scopes",
                number,
                credential=keys[scope],
                suspect="scope",
            )
    if body is not None and not names:  # asked even where what it needs cannot be made
        yield probe("a list in place of an object", "requestBody", "content", body=b"[]")
    if names:
        yield probe("an id that does not exist")
    for name in names:
        if name.endswith("Id"):
            path = builder.path(operation, **{**unknown, name: "verify-no-id"})
            yield probe("a malformed id", path=path)


def refuses_all(builder: Builder, operations: Sequence[Operation], *, makes_keys: bool) -> Journey:
    """Credentials and ids that operations refuse, with API keys that lack a scope each if they can
    be made.
    """
    keys = (yield from _keys(builder)) if makes_keys else {}
    for operation in operations:
        yield from refuses(builder, operation, keys)


def limited(builder: Builder, operations: Sequence[Operation]) -> Journey:
    """A key that is limited to another project than the one that a request is about."""
    project = builder.catalogue.resources.get("projectId")
    create = builder.document.operations.get("createApiKey")
    if project is None or create is None:
        return
    other, key = "the other project", "the limited key"
    yield builder.make(project, other)
    allowed = _key(builder, allowed_projects=[placeholder(other)])
    yield builder.probe(create, SETUP, "a limited key", body=allowed, makes=key, keeps=True)
    for operation in operations:
        needs = builder.needs(operation)
        creates = [needed.create for needed in needs]
        is_open = builder.may(operation) and all(map(builder.may, creates))
        if (
            project not in needs
            or operation.scheme == "jwt"
            or not is_open
            or any(map(costs, creates))
        ):
            continue
        seen = yield builder.probe(
            operation,
            "rejects",
            "a key that is limited to another project",
            pointer_of(operation, "security"),
            body=builder.body(operation),
            credential=f"{key} secret",
            suspect="auth",
        )
        if not seen.is_alike:
            builder.present.clear()


def _key(builder: Builder, lacks: str = "", **more: Any) -> Body:
    """The body that makes a key with all scopes but one."""
    scopes = [scope["name"] for scope in builder.document.scopes if scope["assignable"]]
    named = {"name": builder.variants.value("name"), **more}
    return {**named, "scopes": [scope for scope in scopes if scope != lacks]}


def strangers(builder: Builder) -> Journey:
    """Paths and methods that the contract does not have."""
    yield Probe(None, "GET", "/v2/verify-unknown", Aim("rejects", "an unknown path", "#/paths"))
    every = builder.document.operations.values()
    known = {(each.path, each.method) for each in every}
    for path, operation in {each.path: each for each in reversed(every)}.items():
        free = [method for method in ("PATCH", "DELETE", "PUT") if (path, method) not in known]
        if free and "{" in path:
            unknown = builder.path(operation, **dict.fromkeys(path_names(operation), UNKNOWN_ID))
            pointer = pointer_of(operation)
            yield Probe(None, free[0], unknown, Aim("rejects", "an unknown method", pointer))


def _keys(builder: Builder) -> Generator[Asked, Seen, dict[str, str]]:
    """Make API keys that lack one scope each; returns their roles by that scope."""
    operations, roles = builder.document.operations, dict[str, str]()
    create = operations.get("createApiKey")
    if create is None or not builder.may(create):
        return roles
    used = {scope for operation in operations.values() for scope in operation.scopes}
    for scope in _key(builder)["scopes"]:
        if scope not in used:
            continue
        role, body = f"the key {len(roles) + 1}", _key(builder, lacks=scope)
        seen = yield builder.probe(create, SETUP, f"a key without {scope}", body=body, makes=role)
        if not seen.both_accept:
            break
        roles[scope] = f"{role} secret"
    return roles
