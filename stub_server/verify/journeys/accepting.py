"""What an operation accepts and what it refuses: values, credentials and ids; and paths that do not exist."""

from collections.abc import Generator, Sequence
from typing import Any

from ...contract.document import JSON, Operation
from ..catalogue import body_of, pointer_of, with_leaves
from ..probes import (
    NONE,
    SETUP,
    UNKNOWN_ID,
    WRONG,
    Builder,
    Journey,
    Probe,
    Seen,
    encoded,
    placeholder,
    query_text,
    roles_in,
)


def accepts(builder: Builder, operation: Operation) -> Journey:
    """The parameters and the body of an operation, one limit at a time."""
    resource = builder.resource_of(operation)
    if not builder.may_prepare(operation):
        return
    yield from builder.prepare(operation)
    body = builder.body(operation)
    if body is None and operation.method == "GET":
        yield builder.probe(operation, "says_yes", "a plain request")
    yield from parameters(builder, operation)
    if body is None:
        return
    pointer = body_of(operation)
    changes = resource is not None and operation not in resource.creates
    is_first = True  # of the records that are changed: a second one may not have what it has
    for variant in builder.body_variants(operation, body):
        value = variant.value if changes and is_first else builder.fresh.renewed(variant.value, variant.places)
        makes = "" if resource is None or changes else f"{resource.role} more"
        seen = yield builder.probe(
            operation,
            "says_yes" if variant.is_accepted else "says_no",
            variant.tries,
            variant.pointer,
            body=builder.harmless(operation, value),
            makes=makes,
            keeps=False,
        )
        if changes and not seen.is_alike:
            is_first = False
            yield from builder.prepare(operation)
        elif resource is not None and makes and seen.twin.is_success:
            yield from builder.delete(resource, makes)
    for role in sorted(set(roles_in(body))):
        other = _without_role(body, role)
        yield builder.probe(operation, "says_no", f"{role} that does not exist", pointer, body=other, keeps=False)
    for media, sent, tries in (
        ("text/plain", b"verify", "a body that is not JSON"),
        (JSON, b'{"name": ', "incomplete JSON"),
        (JSON, b"[]", "a list in place of an object"),
    ):
        content = pointer_of(operation, "requestBody", "content")
        yield builder.probe(operation, "says_no", tries, content, body=sent, media=media, keeps=False)


def parameters(builder: Builder, operation: Operation) -> Journey:
    """Values of each parameter of a query."""
    for name, variant in builder.parameter_variants(operation):
        yield builder.probe(
            operation,
            "says_yes" if variant.is_accepted else "says_no",
            variant.tries,
            variant.pointer,
            query={name: query_text(variant.value)},
            keeps=operation.method != "GET",
        )


def refuses(builder: Builder, operation: Operation, keys: dict[str, str]) -> Journey:
    """Credentials and ids that are refused. `keys` are roles of API keys by the scope that each lacks."""
    if not builder.may(operation):
        return
    names = [p.name for p in operation.parameters if p.place == "path"]
    unknown = dict.fromkeys(names, UNKNOWN_ID)
    body = builder.body(operation)
    for role in set(roles_in(body)):
        body = _without_role(body, role)

    def probe(learns: str, *steps: str | int, **more: Any) -> Probe:
        more = {"path": builder.path(operation, **unknown), "body": body, "keeps": False, **more}
        return builder.probe(operation, "says_no", learns, pointer_of(operation, *steps), **more)

    if operation.scheme is not None:
        yield probe("no credential", "security", credential=NONE, suspect="auth")
        yield probe("an invalid credential", "security", credential=WRONG, suspect="auth")
    for number, scope in enumerate(operation.raw.get("x-scopes", ())):
        if scope in keys:
            yield probe(f"a key without {scope}", "x-scopes", number, credential=keys[scope], suspect="scope")
    if body is not None and not names:  # asked even where what it needs cannot be made
        yield probe("a list in place of an object", "requestBody", "content", body=b"[]")
    if names:
        yield probe("an id that does not exist")
        for name in names:
            if name.endswith("Id"):
                path = builder.path(operation, **{**unknown, name: encoded("verify-no-id")})
                yield probe("a malformed id", path=path)


def refuses_all(builder: Builder, operations: Sequence[Operation], *, makes_keys: bool) -> Journey:
    """Credentials and ids that operations refuse, with API keys that lack a scope each if they can be made."""
    keys = (yield from _keys(builder)) if makes_keys else {}
    for operation in operations:
        yield from refuses(builder, operation, keys)


def strangers(builder: Builder) -> Journey:
    """Paths and methods that the contract does not have."""
    yield Probe(None, "GET", "/v2/verify-unknown", "says_no", "an unknown path", "#/paths", keeps=False)
    paths: dict[str, list[Operation]] = {}
    for operation in builder.catalogue.document.operations.values():
        paths.setdefault(operation.path, []).append(operation)
    for first, *more in paths.values():
        used = {first.method, *(operation.method for operation in more)}
        free = next((method for method in ("PATCH", "DELETE", "PUT") if method not in used), None)
        names = {p.name: UNKNOWN_ID for p in first.parameters if p.place == "path"}
        if free is not None and names:
            path = builder.path(first, **names)
            yield Probe(None, free, path, "says_no", "an unknown method", pointer_of(first), keeps=False)


def _keys(builder: Builder) -> Generator[Probe, Seen, dict[str, str]]:
    """Make API keys that lack one scope each; returns their roles by that scope."""
    document = builder.catalogue.document
    posts = [operation for operation in document.operations.values() if operation.method == "POST"]
    create = next((operation for operation in posts if "scopes" in (builder.body(operation) or {})), None)
    if create is None:
        return {}
    assignable = [scope["name"] for scope in document.scopes if scope["assignable"]]
    used = sorted({scope for o in document.operations.values() for scope in o.scopes})
    roles: dict[str, str] = {}
    for number, scope in enumerate([scope for scope in used if scope in assignable], 1):
        role = f"the key {number}"
        body = {"name": builder.fresh.name(), "scopes": [other for other in assignable if other != scope]}
        yield builder.probe(create, SETUP, f"a key without {scope}", body=body, makes=role)
        roles[scope] = f"{role} secret"
        if number == 1 and not (yield from _opens(builder, create, roles[scope], scope)):
            return {}
    return roles


def _opens(builder: Builder, create: Operation, key: str, lacking: str) -> Generator[Probe, Seen, bool]:
    """Whether a new key is accepted at all. If not, a refusal says nothing about the scope that it lacks."""
    for operation in builder.catalogue.document.operations.values():
        if (
            operation.method == "GET"
            and operation.scheme != "jwt"
            and "{" not in operation.path
            and operation.scopes
            and lacking not in operation.scopes
        ):
            where = pointer_of(operation, "security")
            seen = yield builder.probe(
                operation, "says_yes", "a new private key as the credential", where, credential=key, suspect="auth",
                keeps=False, about=create,
            )  # fmt: skip
            if seen.target.status not in (404, 405):
                return seen.target.status != 401
    return True


def _without_role(body: Any, role: str) -> Any:
    """A body with an unknown id in place of a role."""
    return with_leaves(body, lambda leaf: UNKNOWN_ID if leaf == placeholder(role) else leaf)
