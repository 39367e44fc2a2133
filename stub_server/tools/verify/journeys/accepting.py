"""What an operation accepts, stores and refuses: values, credentials and ids; and paths that do not exist."""

from collections.abc import Callable, Generator, Sequence
from typing import Any

from ....contract.document import JSON, Operation
from ..catalogue import Resource, at, body_of, located, pointer_of, role_of, with_leaves
from ..probes import (
    NONE,
    SETUP,
    UNKNOWN_ID,
    WRONG,
    Asked,
    Builder,
    Journey,
    Measured,
    Probe,
    Seen,
    encoded,
    placeholder,
    query_text,
    roles_in,
)
from ..variants import Variant, applied, keyword_of, size_of

Sent = Generator[Asked, Seen, Seen]
Send = Callable[..., Sent]
_REFUSALS = (400, 422)
_SIZES = frozenset(("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"))


def accepts(builder: Builder, operation: Operation) -> Journey:
    """The parameters and the body of an operation, one limit at a time."""
    if not builder.may_prepare(operation):
        return
    yield from builder.prepare(operation)
    body = builder.body(operation)
    resource = builder.resource_of(operation)
    is_creation = resource is not None and operation in resource.creates
    if operation.takes_key and not is_creation:
        yield from repeats(builder, operation, body)
    if body is None and operation.method == "GET":
        yield builder.probe(operation, "accepts", "a plain request")
    yield from parameters(builder, operation)
    if body is None:
        return
    if resource is not None and is_creation:
        yield from _creates(builder, resource, operation, body)
    elif resource is not None and operation == resource.update:
        yield from _updates(builder, resource, operation, body)
    else:
        send = _sender(builder, operation, resource)
        for value in (builder.variants.smallest(operation.body or {}, body), _fullest(builder, operation, body)):
            yield from send(value, "the members of the body", body_of(operation))
        yield from _groups(builder, operation, body, send)
        yield from _refused(builder, operation, body, resource)


def _creates(builder: Builder, resource: Resource, operation: Operation, body: Any) -> Journey:
    """Create records with few members, with each one and with all; then with the values at the limits."""
    schema, pointer = operation.body or {}, body_of(operation)
    send = _sender(builder, operation, resource)
    smallest, full = builder.variants.smallest(schema, body), _fullest(builder, operation, body)
    alone = [smallest]
    for name in [name for name in full if name not in smallest]:
        node = (builder.catalogue.body(operation) or {})["properties"][name]
        value = builder.variants.another(node, name, full[name], builder.fresh)
        alone.append({**builder.fresh.renewed(smallest), name: full[name] if value is None else value})
    if resource.delete is None and len(alone) > 2:
        alone.pop(0)  # each member is left out of some: a record that stays behind would show no more
    for body_ in alone:
        if not builder.variants.accepts(schema, body_):
            continue
        learns = f"the required members{''.join(f' and {name}' for name in body_ if name not in smallest)}"
        if operation.takes_key and body_ is alone[0]:
            yield from repeats(builder, operation, body_)
        else:
            yield from send(body_, learns, pointer)
    for example in builder.examples(operation):
        yield from send(example, "an example of the contract", pointer)
    full = builder.fresh.renewed(full)
    seen = yield builder.probe(
        operation, "accepts", "all members", pointer, body=full, makes=resource.role, keeps=False
    )
    if seen.twin.is_success and seen.target.is_success:
        builder.present[resource.role] = full
    yield from _groups(builder, operation, body, send)
    yield from _refused(builder, operation, body, resource)


def _fullest(builder: Builder, operation: Operation, body: Any) -> Any:
    return builder.harmless(operation, builder.variants.fullest(operation.body or {}, body))


def _updates(builder: Builder, resource: Resource, operation: Operation, body: Any) -> Journey:
    """Change each member alone, and all together, always to another value; then to the values at the limits."""
    schema, pointer = operation.body or {}, body_of(operation)
    properties = (builder.catalogue.body(operation) or {})["properties"]
    stored = dict(builder.present[resource.role])
    send = _sender(builder, operation, resource)

    def another(name: str) -> Any:
        role = role_of(name.removesuffix("s"))
        if role not in builder.present:
            return builder.variants.another(properties[name], name, stored.get(name), builder.fresh)
        if name.endswith("s"):
            return [] if stored.get(name) else [placeholder(role)]
        return placeholder(role) if stored.get(name) is None else None  # such as the project of a webhook

    together = {}
    for name in properties:
        value = another(name)
        if value is None and stored.get(name) is None:
            continue
        seen = yield from send({name: value}, f"change {name} alone", f"{pointer}/properties/{name}", group="persists")
        if seen.twin.is_success:
            stored[name] = value
            together[name] = another(name)
    yield from send(together, "change all members", pointer, group="persists")
    if together.keys() < properties.keys():  # rules bind some together, such as a document and its type
        for create in resource.creates:
            for example in builder.examples(create):
                changes = {name: value for name, value in example.items() if name in properties}
                yield from send(changes, "change to an example of the contract", pointer, group="persists")
        yield from send(together, "change all members back", pointer, group="persists")
    yield from _anew(builder, resource, operation)
    yield from _groups(builder, operation, body, send)
    yield from _anew(builder, resource, operation)
    if builder.variants.accepts(schema, body):
        yield from _refused(builder, operation, body, resource)


def _anew(builder: Builder, resource: Resource, operation: Operation) -> Journey:
    """Make another record of a kind with states: one in its last state takes no other change."""
    if resource.lifecycle is not None:
        builder.present.pop(resource.role, None)
        yield from builder.prepare(operation)


def _sender(builder: Builder, operation: Operation, resource: Resource | None) -> Send:
    """A function that sends a body, deletes what it creates, and makes a record anew after answers that differ."""
    is_creation = resource is not None and operation in resource.creates

    def send(body: Any, learns: str, pointer: str, *, group: str = "accepts", is_quiet: bool = False) -> Sent:
        makes = f"{resource.role} more" if resource is not None and is_creation else ""
        sent = builder.harmless(operation, body)
        probe = builder.probe(operation, group, learns, pointer, body=sent, makes=makes, keeps=False, is_quiet=is_quiet)
        seen: Seen = yield probe
        if resource is not None and is_creation and seen.twin.is_success and seen.target.is_success:
            builder.present[makes] = sent
            yield from builder.delete(resource, makes)
        elif resource is not None and not is_creation and not seen.is_alike:
            builder.present.pop(resource.role, None)
            yield from builder.prepare(operation)
        return seen

    return send


def repeats(builder: Builder, operation: Operation, body: Any) -> Journey:
    """A body with an Idempotency-Key, then the same request again, and another body with the same key."""
    key = {"Idempotency-Key": builder.fresh.text(20)}
    pointer = pointer_of(operation)
    for number, parameter in enumerate(operation.parameters):
        if parameter.name.lower() == "idempotency-key":
            pointer = pointer_of(operation, "parameters", number)
    other = {**(body or {}), **_another(builder, operation, body or {})}
    resource = builder.resource_of(operation)
    makes = f"{resource.role} more" if resource is not None and operation in resource.creates else ""
    for learns, sent, suspect in (
        ("with an Idempotency-Key", body, ""),
        ("the same request with the same Idempotency-Key", body, "idempotency"),
        ("another body with the same Idempotency-Key", other, "idempotency"),
    ):
        yield builder.probe(
            operation, "persists", learns, pointer, body=sent, headers=key, suspect=suspect, keeps=False, makes=makes
        )
        makes = ""


def _another(builder: Builder, operation: Operation, body: Any) -> dict[str, Any]:
    """A member with another value that the contract accepts beside the rest."""
    for name, node in (builder.catalogue.body(operation) or {}).get("properties", {}).items():
        value = builder.variants.another(node, name, body.get(name), builder.fresh)
        if value is not None and builder.variants.accepts(operation.body or {}, {**body, name: value}):
            return {name: value}
    return {}


def _groups(builder: Builder, operation: Operation, body: Any, send: Send) -> Journey:
    """The values at the limits of a body, as many in one request as the backend accepts together."""
    for group in builder.variants.groups(operation.body or {}, body_of(operation), body, builder.fresh):
        yield from _halves(builder, operation, body, group, send)


def _halves(
    builder: Builder, operation: Operation, body: Any, group: Sequence[Variant], send: Send
) -> Generator[Asked, Seen, bool]:
    """Send values together, else in halves; whether one of them departs."""
    is_one = len(group) == 1
    group = [builder.fresh.redrawn(part) for part in group]
    value = builder.fresh.renewed(applied(body, group), frozenset(part.place for part in group))
    learns = group[0].tries if is_one else f"{len(group)} members with other values"
    pointer = group[0].pointer if is_one else body_of(operation)
    seen = yield from send(value, learns, pointer, is_quiet=not is_one)
    if is_one and seen.twin.is_success and seen.target.status in _REFUSALS:
        yield from _measure(builder, body, group[0], send)
    if is_one or (seen.twin.is_success and seen.target.is_success):
        return not seen.is_alike
    half = len(group) // 2
    first = yield from _halves(builder, operation, body, group[:half], send)
    second = yield from _halves(builder, operation, body, group[half:], send)
    if not (first or second or seen.is_alike):
        yield from send(builder.fresh.renewed(value, frozenset(part.place for part in group)), learns, pointer)
        return True
    return first or second


def _measure(builder: Builder, body: Any, part: Variant, send: Send) -> Journey:
    """Find the limit of a backend that refuses the contract's, by halving the distance to a value that it accepts."""
    node = located(builder.document, part.pointer)[1]
    keyword = keyword_of(part.tries, node)
    usual = size_of(at(body, part.place)) if part.place else None
    if usual is None:
        usual = node.get("min" + keyword[3:], 1) if keyword.startswith("max") else node.get("max" + keyword[3:])
    if keyword not in _SIZES or not isinstance(usual, (int, float)):
        return
    step = node.get("multipleOf", 1) if keyword in ("minimum", "maximum") else 1
    refused, accepted = round(node[keyword] / step), round(usual / step)
    while abs(refused - accepted) > 1:
        middle = (refused + accepted) // 2
        value = builder.variants.sized(node, round(middle * step, 6), part.value, builder.fresh)
        if value is None:
            return
        other = part._replace(value=value)
        sent = builder.fresh.renewed(applied(body, [other]), frozenset((part.place,)))
        seen = yield from send(sent, "where the limit is", part.pointer, is_quiet=True, group=SETUP)
        if seen.target.is_success:
            accepted = middle
        elif seen.target.status in _REFUSALS:
            refused = middle
        else:
            return
    yield Measured(part.pointer, keyword, round(accepted * step, 6))


def _refused(builder: Builder, operation: Operation, body: Any, resource: Resource | None) -> Journey:
    send = _sender(builder, operation, resource)
    for variant in builder.variants.refused(operation.body or {}, body_of(operation), body, builder.fresh):
        value = builder.fresh.renewed(variant.value, frozenset((variant.place,)))
        yield from send(value, variant.tries, variant.pointer, group="rejects")
    for role in sorted(set(roles_in(body))):
        other = builder.fresh.renewed(_without_role(body, role))
        yield from send(other, f"{role} that does not exist", body_of(operation), group="rejects")
    for media, sent, tries in (
        ("text/plain", b"verify", "a body that is not JSON"),
        (JSON, b'{"name": ', "incomplete JSON"),
        (JSON, b"[]", "a list in place of an object"),
    ):
        content = pointer_of(operation, "requestBody", "content")
        yield builder.probe(operation, "rejects", tries, content, body=sent, media=media, keeps=False)


def parameters(builder: Builder, operation: Operation) -> Journey:
    """Values of each parameter of a query."""
    for number, parameter in enumerate(operation.parameters):
        if parameter.place != "query":
            continue
        pointer = pointer_of(operation, "parameters", number, "schema")
        for variant, is_accepted in builder.variants.of_parameter(
            parameter.schema, pointer, parameter.name, builder.fresh
        ):

            def send(value: Any, learns: str, pointer: str, *, group: str, is_quiet: bool = False) -> Sent:
                query = {name: query_text(inner) for name, inner in value.items()}
                seen: Seen = yield builder.probe(
                    operation, group, learns, pointer, query=query, is_quiet=is_quiet, keeps=False
                )
                return seen

            value, group = {parameter.name: variant.value}, "accepts" if is_accepted else "rejects"
            seen = yield from send(value, variant.tries, variant.pointer, group=group)
            if is_accepted and seen.twin.is_success and seen.target.status in _REFUSALS:
                yield from _measure(builder, {}, variant, send)


def refuses(builder: Builder, operation: Operation, keys: dict[str, str]) -> Journey:
    """Credentials and ids that are refused. `keys` are roles of API keys by the scope that each lacks."""
    names = [p.name for p in operation.parameters if p.place == "path"]
    unknown = dict.fromkeys(names, UNKNOWN_ID)
    body = builder.body(operation)
    for role in set(roles_in(body)):
        body = _without_role(body, role)

    def probe(learns: str, *steps: str | int, **more: Any) -> Probe:
        more = {"path": builder.path(operation, **unknown), "body": body, "keeps": False, **more}
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
    yield Probe(None, "GET", "/v2/verify-unknown", "rejects", "an unknown path", "#/paths", keeps=False)
    paths: dict[str, list[Operation]] = {}
    for operation in builder.document.operations.values():
        paths.setdefault(operation.path, []).append(operation)
    for first, *more in paths.values():
        used = {first.method, *(operation.method for operation in more)}
        free = next((method for method in ("PATCH", "DELETE", "PUT") if method not in used), None)
        names = {p.name: UNKNOWN_ID for p in first.parameters if p.place == "path"}
        if free is not None and names:
            path = builder.path(first, **names)
            yield Probe(None, free, path, "rejects", "an unknown method", pointer_of(first), keeps=False)


def _keys(builder: Builder) -> Generator[Asked, Seen, dict[str, str]]:
    """Make API keys that lack one scope each; returns their roles by that scope."""
    operations = builder.document.operations.values()
    creates = [o for o in operations if o.method == "POST" and "scopes" in (builder.body(o) or {})]
    if not creates or not builder.may(creates[0]):
        return {}
    assignable = [scope["name"] for scope in builder.document.scopes if scope["assignable"]]
    used = {scope for operation in operations for scope in operation.scopes}
    roles: dict[str, str] = {}
    for number, scope in enumerate([scope for scope in assignable if scope in used], 1):
        role = f"the key {number}"
        body = {"name": builder.fresh.name(), "scopes": [other for other in assignable if other != scope]}
        seen = yield builder.probe(creates[0], SETUP, f"a key without {scope}", body=body, makes=role, keeps=False)
        if not seen.target.is_success or not seen.twin.is_success:
            return roles
        roles[scope] = f"{role} secret"
        if number == 1 and not (yield from _opens(builder, creates[0], roles[scope], scope)):
            return {}
    return roles


def _opens(builder: Builder, create: Operation, key: str, lacking: str) -> Generator[Asked, Seen, bool]:
    """Whether a new key is accepted at all. If not, a refusal says nothing about the scope that it lacks."""
    for operation in builder.document.operations.values():
        is_plain = operation.method == "GET" and operation.scheme != "jwt" and "{" not in operation.path
        if is_plain and operation.scopes and lacking not in operation.scopes:
            where = pointer_of(operation, "security")
            seen = yield builder.probe(
                operation, "accepts", "a new private key as the credential", where, credential=key, suspect="auth",
                keeps=False, about=create,
            )  # fmt: skip
            if seen.target.status not in (404, 405):
                return seen.target.status != 401
    return True


def _without_role(body: Any, role: str) -> Any:
    """A body with an unknown id in place of a role."""
    return with_leaves(body, lambda leaf: UNKNOWN_ID if leaf == placeholder(role) else leaf)
