"""Who may not ask, and what is not there."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from ...contract.document import Operation
from ..building import Builder, encoded
from ..places import pointer_of
from ..probe import NONE, WRONG, Probe, Seen, Steps
from ..roles import placeholder, roles_in
from .parts import NOWHERE_ID, SAYS_NO, SAYS_YES, keys_of, replaced


def refuses(builder: Builder, operation: Operation, keys: dict[str, str]) -> Steps:
    """Who may not ask, and for what is not there. `keys` are roles of API keys by the scope that each lacks."""
    if not builder.may(operation):
        return
    where = pointer_of(operation)
    names = [p.name for p in operation.parameters if p.place == "path"]
    others = {name: NOWHERE_ID for name in names}
    body = builder.body(operation)
    for role in set(roles_in(body)):
        body = replaced(body, placeholder(role), NOWHERE_ID)
    path = builder.path(operation, **others)

    def probe(learns: str, pointer: str, at_path: str = path, **more: Any) -> Probe:
        return Probe(operation, operation.method, at_path, SAYS_NO, learns, pointer, body=body, keeps=False, **more)

    if operation.scheme is not None:
        yield probe("no credential", f"{where}/security", credential=NONE, suspect="auth")
        yield probe("a credential that nobody issued", f"{where}/security", credential=WRONG, suspect="auth")
    for number, scope in enumerate(operation.raw.get("x-scopes", ())):
        if scope in keys:
            at_scope = f"{where}/x-scopes/{number}"
            yield probe(f"a key without {scope}", at_scope, credential=keys[scope], suspect="scope")
    if body is not None and not names and builder.may(operation):  # asked even where what it needs cannot be made
        content = f"{where}/requestBody/content"
        yield replace(probe("a list for an object", content), body=b"[]")
    if names:
        yield probe("an id that is nowhere", where, suspect="")
        for name in names:
            if name.endswith("Id"):
                path = builder.path(operation, **{**others, name: encoded("verify-no-id")})
                yield probe("an id that is none", where, path)


def strangers(builder: Builder) -> Steps:
    """Paths and methods that the contract does not have."""
    yield Probe(None, "GET", "/v2/verify-unknown", SAYS_NO, "a path that is unknown", "#/paths", keeps=False)
    paths: dict[str, set[str]] = {}
    for operation in builder.catalogue.document.operations.values():
        paths.setdefault(operation.path, set()).add(operation.method)
    for operation in builder.catalogue.document.operations.values():
        free = [method for method in ("PATCH", "DELETE", "PUT") if method not in paths[operation.path]]
        names = {p.name: NOWHERE_ID for p in operation.parameters if p.place == "path"}
        if free and names:
            path = builder.path(operation, **names)
            paths[operation.path].update(free)
            yield Probe(None, free[0], path, SAYS_NO, "a method that is unknown", pointer_of(operation), keeps=False)


def keyholders(builder: Builder) -> Generator[Probe, Seen, dict[str, str]]:
    """Make API keys, each without one scope; answers their roles by the scope that is missing."""
    document = builder.catalogue.document
    create = next(
        (o for o in document.operations.values() if o.method == "POST" and "scopes" in keys_of(builder.body(o))), None
    )
    if create is None:
        return {}
    assignable = [scope["name"] for scope in document.scopes if scope["assignable"]]
    used = sorted({scope for o in document.operations.values() for scope in o.scopes})
    roles: dict[str, str] = {}
    for number, scope in enumerate([scope for scope in used if scope in assignable], 1):
        role = f"the key {number}"
        body = {"name": builder.fresh.name(), "scopes": [other for other in assignable if other != scope]}
        path = builder.path(create)
        yield Probe(
            create, create.method, path, "setup", f"a key without {scope}", pointer_of(create), body=body, makes=role
        )
        roles[scope] = f"{role} secret"
        if number == 1 and not (yield from _opens(builder, create, roles[scope], scope)):
            return {}
    return roles


def _opens(builder: Builder, create: Operation, key: str, lacking: str) -> Generator[Probe, Seen, bool]:
    """Whether a key is a credential at all: else what it lacks cannot be told."""
    for operation in builder.catalogue.document.operations.values():
        if (
            operation.method == "GET"
            and operation.scheme != "jwt"
            and "{" not in operation.path
            and operation.scopes
            and lacking not in operation.scopes
        ):
            where = f"{pointer_of(operation)}/security"
            learns = "its private key as a credential"
            seen = yield Probe(
                operation, "GET", operation.path, SAYS_YES, learns, where, credential=key, suspect="auth",
                keeps=False, about=create,
            )  # fmt: skip
            if seen.target.status not in (404, 405):
                return seen.target.status != 401
    return True
