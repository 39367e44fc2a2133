"""The journeys of a run: for each operation and each kind of record, the probes that the contract suggests."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID

from ..contract.document import Operation
from ..kernel.record import UniqueKey
from .building import Builder, encoded
from .probe import NONE, WRONG, Flaw, Probe, Seen, Steps
from .resources import Resource, at, pointer_of, role_of

NOWHERE_ID = "{the unknown id}"
_SAYS_YES, _SAYS_NO = "says_yes", "says_no"


def accepts(builder: Builder, operation: Operation) -> Steps:
    """What an operation accepts and refuses: its parameters and its body, one limit at a time."""
    resource = builder.resource_of(operation)
    if not builder.may_make(operation):
        return
    yield from ready(builder, operation)
    body = builder.body(operation)
    path = builder.path(operation)
    where = pointer_of(operation)
    if body is None and operation.method in ("GET",):
        yield Probe(operation, operation.method, path, _SAYS_YES, "ask", where)
    yield from _parameters(builder, operation, path)
    if body is None:
        return
    schema = operation.body or {}
    pointer = f"{where}/requestBody/content/application~1json/schema"
    changes = resource is not None and operation not in resource.creates
    is_first = True  # of the records that are changed: a second one may not have what it has
    for variant in builder.variants.of_body(schema, pointer, body, builder.fresh):
        value = variant.value if changes and is_first else builder.fresh.renewed(variant.value, variant.places)
        value = builder.harmless(operation, value)
        group = _SAYS_YES if variant.is_accepted else _SAYS_NO
        makes = "" if resource is None or changes else f"{resource.role} more"
        seen = yield Probe(
            operation,
            operation.method,
            path,
            group,
            variant.tries,
            variant.pointer,
            body=value,
            makes=makes,
            keeps=False,
        )
        if changes and not seen.is_alike:
            is_first = False
            yield from ready(builder, operation)
        elif resource is not None and makes and resource.delete is not None and 200 <= seen.twin.status < 300:
            yield _away(builder, resource, makes)
    for role in sorted(set(_named(body))):
        learns = f"{role[1:-1]} that is nowhere"
        other = _replaced(body, role, NOWHERE_ID)
        yield Probe(operation, operation.method, path, _SAYS_NO, learns, pointer, body=other, keeps=False)
    for media, sent, tries in (
        ("text/plain", b"verify", "a body that is no JSON"),
        ("application/json", b'{"name": ', "JSON that breaks off"),
        ("application/json", b"[]", "a list for an object"),
    ):
        content = f"{where}/requestBody/content"
        yield Probe(operation, operation.method, path, _SAYS_NO, tries, content, body=sent, media=media, keeps=False)


def _away(builder: Builder, resource: Resource, role: str) -> Probe:
    """Deletes a record that is needed no more: some kinds are limited in number."""
    delete = resource.delete
    assert delete is not None
    path = builder.path(delete, **{resource.key: "{" + role + "}"})
    return Probe(delete, delete.method, path, "setup", f"delete {role}", pointer_of(delete), keeps=False)


def ready(builder: Builder, operation: Operation) -> Steps:
    """Make what an operation needs."""
    yield from builder.setup(builder.needs(operation, builder.body(operation)))
    yield from _log(builder, operation)


def _log(builder: Builder, operation: Operation) -> Steps:
    """A delivery, where an operation names one: a test of the webhook makes it."""
    if "{logId}" not in operation.path:
        return
    test = builder.catalogue.document.operations.get("sendTestWebhook")
    if test is None or not builder.may(test):
        return
    yield from builder.setup(builder.needs(test, builder.body(test)))
    yield Probe(
        test, test.method, builder.path(test), "setup", "send a test", pointer_of(test), body={}, makes="the log"
    )


def _parameters(builder: Builder, operation: Operation, path: str) -> Steps:
    for number, parameter in enumerate(operation.parameters):
        where = pointer_of(operation, "parameters", str(number), "schema")
        if parameter.place != "query":
            continue
        for variant in builder.variants.of_parameter(parameter.schema, where, parameter.name, builder.fresh):
            value = str(variant.value).lower() if isinstance(variant.value, bool) else str(variant.value)
            group = _SAYS_YES if variant.is_accepted else _SAYS_NO
            query, method = {parameter.name: value}, operation.method
            keeps = method != "GET"
            yield Probe(operation, method, path, group, variant.tries, variant.pointer, query=query, keeps=keeps)


def refuses(builder: Builder, operation: Operation, keys: dict[str, str]) -> Steps:
    """Who may not ask, and for what is not there. `keys` are roles of API keys by the scope that each lacks."""
    if not builder.may(operation):
        return
    where = pointer_of(operation)
    names = [p.name for p in operation.parameters if p.place == "path"]
    others = {name: NOWHERE_ID for name in names}
    body = builder.body(operation)
    for name in sorted(set(_named(body))):
        body = _replaced(body, name, NOWHERE_ID)
    path = builder.path(operation, **others)

    def probe(learns: str, pointer: str, at_path: str = path, **more: Any) -> Probe:
        return Probe(operation, operation.method, at_path, _SAYS_NO, learns, pointer, body=body, keeps=False, **more)

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
                malformed = builder.path(operation, **{**others, name: encoded("verify-no-id")})
                yield probe("an id that is none", where, malformed)


def strangers(builder: Builder) -> Steps:
    """Paths and methods that the contract does not have."""
    yield Probe(None, "GET", "/v2/verify-unknown", _SAYS_NO, "a path that is unknown", "#/paths", keeps=False)
    paths: dict[str, set[str]] = {}
    for operation in builder.catalogue.document.operations.values():
        paths.setdefault(operation.path, set()).add(operation.method)
    for operation in builder.catalogue.document.operations.values():
        free = [method for method in ("PATCH", "DELETE", "PUT") if method not in paths[operation.path]]
        names = {p.name: NOWHERE_ID for p in operation.parameters if p.place == "path"}
        if free and names:
            path = builder.path(operation, **names)
            paths[operation.path].update(free)
            yield Probe(None, free[0], path, _SAYS_NO, "a method that is unknown", pointer_of(operation), keeps=False)


def repeats(builder: Builder, operation: Operation) -> Steps:
    """An operation with a key for idempotency, sent again alike and with another body."""
    if not operation.takes_key or not builder.may_make(operation):
        return
    yield from ready(builder, operation)
    body, key = builder.body(operation), {"Idempotency-Key": builder.fresh.tag}
    pointer = _parameter_at(operation, "idempotency-key")

    def probe(learns: str, sent: Any) -> Probe:
        path = builder.path(operation)
        return Probe(
            operation, operation.method, path, "remembers", learns, pointer, body=sent, headers=key,
            suspect="idempotency", keeps=False,
        )  # fmt: skip

    yield replace(probe("with an Idempotency-Key", body), suspect="")
    yield probe("the same request again with its Idempotency-Key", body)
    other = builder.fresh.renewed({**(body or {}), **_another(builder, operation)})
    yield probe("another body with that Idempotency-Key", other)


def _another(builder: Builder, operation: Operation) -> dict[str, Any]:
    """A member that makes a body another one."""
    properties = (builder.catalogue.body(operation) or {}).get("properties", {})
    for name, node in properties.items():
        schema = builder.catalogue.document.resolve(node)
        if schema.get("type") == "string" and "enum" not in schema and "format" not in schema:
            return {name: "verify otherwise"}
    return {name: builder.variants.sample(builder.catalogue.document.resolve(n)) for name, n in properties.items()}


def depends(builder: Builder, resource: Resource) -> Steps:
    """What may be done to a record with others below it, and to those in each of its states."""
    below = [
        child
        for child in builder.catalogue.resources.values()
        if child is not resource and resource in builder.needs(child.creates[0], builder.body(child.creates[0]))
    ]
    for child in below:
        create = child.creates[0]
        if not builder.may_make(create):
            continue
        yield from builder.setup(builder.needs(create, builder.body(create)))
        yield builder.make(child)
        if resource.update is not None:
            body = {**builder.body(resource.update)}
            yield _about(builder, resource.update, f"change {resource.role} with {child.role}", body)
        if resource.delete is not None:
            yield _about(builder, resource.delete, f"delete {resource.role} with {child.role}", None)
    if resource.lifecycle is None:
        return
    roads = _roads(builder, resource, list(_ways(builder, resource)))
    for state, (_, steps) in roads.items():
        for child in below:
            create = child.creates[0]
            if not builder.may_make(create) or not steps:
                continue
            needed = builder.needs(create, builder.body(create))
            yield from builder.setup(needed)
            yield builder.make(child)
            for by, sent in steps:
                yield _move(builder, by, sent, f"to {state}")
            for operation in (create, child.update, child.delete):
                if operation is not None:
                    learns = f"{operation.id} below {resource.role} that is {state}"
                    yield _about(builder, operation, learns, builder.body(operation))


def _about(builder: Builder, operation: Operation, learns: str, body: Any) -> Probe:
    path, where = builder.path(operation), pointer_of(operation)
    return Probe(operation, operation.method, path, "moves", learns, where, body=body, suspect="lifecycle", keeps=False)


def remembers(builder: Builder, resource: Resource) -> Steps:
    """What is created, changed and deleted is so when it is read again."""
    create = resource.creates[0]
    if not builder.may_make(create):
        return
    yield from builder.setup(builder.needs(create, builder.body(create)))
    role = resource.role
    body = builder.body(create)
    key = {"Idempotency-Key": builder.fresh.tag} if create.takes_key else {}

    def probe(operation: Operation, learns: str, **more: Any) -> Probe:
        made = {"group": "remembers", "pointer": pointer_of(operation), "path": builder.path(operation), **more}
        return Probe(operation, operation.method, learns=learns, **made)

    def read(learns: str, suspect: str, about: Operation) -> Steps:
        pointer = pointer_of(about)
        if resource.read is not None:
            yield probe(resource.read, learns, suspect=suspect, pointer=pointer, about=about)
        if resource.list is not None:
            narrowed = narrowing(builder, resource, resource.list)
            if narrowed:
                yield probe(
                    resource.list,
                    f"{learns}, in the list",
                    suspect=suspect,
                    query=narrowed,
                    pointer=pointer,
                    narrowed=True,
                    about=about,
                )

    yield probe(create, "create", body=body, makes=role, headers=key)
    yield from read("what was created", "not-persisted", create)
    if key:
        idempotency = _parameter_at(create, "idempotency-key")
        yield probe(
            create,
            "the same request again with its Idempotency-Key",
            body=body,
            headers=key,
            suspect="idempotency",
            pointer=idempotency,
        )
        other = builder.body(create)
        yield probe(
            create,
            "another body with that Idempotency-Key",
            body=other,
            headers=key,
            suspect="idempotency",
            pointer=idempotency,
        )
    for parent in builder.needs(create, body):
        if parent.read is not None:
            yield probe(parent.read, f"{parent.role} with it", suspect="figures")
            stats = builder.catalogue.document.operations.get("getProjectStats")
            if parent.key == "projectId" and stats is not None:
                yield probe(stats, "the figures with it", suspect="figures")
    if resource.update is not None:
        yield from _updates(builder, resource, probe, read)
    if resource.delete is not None:
        delete = resource.delete
        yield probe(delete, "delete", suspect="not-deleted")
        gone = pointer_of(delete)
        if resource.read is not None:
            yield probe(resource.read, "what was deleted", suspect="not-deleted", pointer=gone, about=delete)
        yield probe(delete, "delete again", suspect="not-deleted", pointer=gone)
        if resource.list is not None and (narrowed := narrowing(builder, resource, resource.list)):
            yield probe(
                resource.list, "the list without it", suspect="not-deleted", query=narrowed, pointer=gone,
                narrowed=True, about=delete,
            )  # fmt: skip


def _updates(builder: Builder, resource: Resource, probe: Any, read: Any) -> Steps:
    update = resource.update
    assert update is not None
    body = builder.body(update)
    for member in list(body)[:4]:
        if resource.lifecycle is not None and member == resource.lifecycle.field:
            continue
        yield probe(update, f"change {member} alone", body={member: body[member]}, suspect="not-persisted")
        yield from read("what was changed", "not-persisted", update)


def unique(builder: Builder, resource: Resource) -> Steps:
    """What no second record may have, in another spelling too."""
    create = resource.creates[0]
    if not builder.may_make(create):
        return
    yield from builder.setup(builder.needs(create, builder.body(create)))
    path, schema = builder.path(create), f"{pointer_of(create)}/requestBody/content/application~1json/schema"
    body = builder.body(create)
    yield Probe(create, create.method, path, "setup", "create", pointer_of(create), body=body, makes=resource.role)
    for member, again in again_taken(builder.catalogue.document.unique.get(resource.schema, ()), body):
        pointer = f"{schema}/properties/{member}"
        copied = {**builder.body(create), member: again}
        yield Probe(
            create, create.method, path, "remembers", f"{member} once more", pointer, body=copied, keeps=False,
            is_checked=False,
        )  # fmt: skip


def again_taken(keys: Iterable[UniqueKey], body: Any) -> Iterator[tuple[str, str]]:
    """Members of unique keys, as they were sent and in the spellings that the keys do not tell apart."""
    for key in keys:
        member = key.members[0]
        value = body.get(member)
        if key.code is None or len(key.members) > 1 or not isinstance(value, str):
            continue
        yield member, value
        if "punctuation" in key.ignores:
            yield member, f"{value[:3]}.{value[3:6]}.{value[6:9]}-{value[9:]}"
        if "case" in key.ignores and value.upper() != value:
            yield member, value.upper()


def narrowing(builder: Builder, resource: Resource, operation: Operation) -> dict[str, str]:
    """A query that leaves the journey's own records alone, or nothing."""
    names = [p.name for p in operation.parameters if p.place == "query"]
    if "projectId" in names and any("projectId" in _keys(builder.body(create)) for create in resource.creates):
        return {"projectId": "{the project}", "limit": "100"}
    for name in ("search", "name"):
        if name in names:
            return {name: builder.fresh.tag, "limit": "100"}
    return {}


_MOST = 3


def finds(builder: Builder, resource: Resource) -> Steps:
    """Every filter, every order, and pages that together are the whole."""
    listing, create = resource.list, resource.creates[0]
    if listing is None or not builder.may_make(create):
        return
    narrowed = narrowing(builder, resource, listing)
    if not narrowed:
        return
    yield from builder.setup(builder.needs(create, builder.body(create)))
    bodies = [builder.plain(create), builder.body(create), builder.plain(create)]
    for number, body in enumerate(bodies, 1):
        made = Probe(
            create, create.method, builder.path(create), "setup", f"make {resource.role}", pointer_of(create),
            body=body, makes=f"{resource.role} {number}" if number > 1 else resource.role,
        )  # fmt: skip
        yield made
    path, where = builder.path(listing), pointer_of(listing)

    def asked(learns: str, suspect: str, pointer: str = where, **query: str) -> Probe:
        return Probe(
            listing, listing.method, path, "finds", learns, pointer, query={**narrowed, **query}, suspect=suspect,
            narrowed=True,
        )  # fmt: skip

    seen = yield asked("all of them", "filter")
    if seen.has_departed:
        return
    values: list[tuple[str, str]] = []
    for number, parameter in enumerate(listing.parameters):
        name = parameter.name
        if parameter.place != "query" or name in ("page", "limit", "sort", *narrowed):
            continue
        pointer = pointer_of(listing, "parameters", str(number))
        for value in _filters(builder, name, parameter.schema, seen, bodies[1], resource):
            values.append((name, value))
            yield asked(f"{name}={value[:60]}", "filter", pointer, **{name: value})
    for (first, value), (second, other) in pairwise(values):
        if first != second:
            yield asked(f"{first} and {second}", "filter", **{first: value, second: other})
    for number, parameter in enumerate(listing.parameters):
        if parameter.name == "sort":
            for option in parameter.schema.get("enum", ()):
                yield asked(f"sort={option}", "sort", pointer_of(listing, "parameters", str(number)), sort=option)
    whole, pages = _ids(builder, listing, seen), list[Any]()
    for number in range(1, len(bodies) + 2):
        page = yield asked(f"page {number} of one", "paging", page=str(number), limit="1")
        pages += _ids(builder, listing, page)
    if pages != whole[: len(pages)] and not seen.has_departed:
        yield Flaw("paging", "pages put together are not the list", "the entries of the list, in its order")
    yield asked("a page past the end", "paging", page="1000")


def _ids(builder: Builder, listing: Operation, seen: Seen) -> list[Any]:
    """The ids of the entries of a list, in its order."""
    entries = at(seen.body, builder.catalogue.entries_at(listing) or ())
    return [entry.get("id") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _filters(builder: Builder, name: str, schema: Any, seen: Seen, body: Any, resource: Resource) -> Iterator[str]:
    """Values of a filter: those that match and one that does not, as far as the schema tells."""
    schema = builder.catalogue.document.resolve(schema)
    if "enum" in schema:
        yield from (str(option) for option in schema["enum"][:6])
    elif schema.get("type") == "boolean":
        yield from ("true", "false")
    elif schema.get("format") == "uuid":
        yield (
            "{" + role_of(name) + "}"
            if name in builder.catalogue.resources and name != "subscriptionId"
            else NOWHERE_ID
        )
        yield NOWHERE_ID
    elif schema.get("format") == "date-time":
        yield "2000-01-01T00:00:00Z"
        yield "2999-01-01T00:00:00Z"
    elif name == "search":
        yield builder.fresh.tag
        yield "verify-nothing"
    else:
        value = _found(body, name)
        if isinstance(value, str):
            yield value
            yield value.upper()
        yield "verify-nothing"


def moves(builder: Builder, resource: Resource) -> Steps:
    """From every state that operations reach, every move that they could make."""
    lifecycle, create = resource.lifecycle, resource.creates[0]
    if lifecycle is None or not builder.may_make(create):
        return
    ways = list(_ways(builder, resource))
    roads = _roads(builder, resource, ways)
    yield from builder.setup(builder.needs(create, builder.body(create)))
    for state, road in roads.items():
        for operation, body in ways:
            begin, steps = road
            yield builder.make(resource, **begin)
            for by, sent in steps:
                yield _move(builder, by, sent, f"to {state}")
            learns = f"{operation.id}{' ' + str(body) if body else ''} from {state}"
            yield _move(builder, operation, body, learns)
            if resource.read is not None and operation != resource.delete:
                yield Probe(
                    resource.read, "GET", builder.path(resource.read), "moves", f"after {learns}",
                    f"#/components/schemas/{resource.schema}/x-lifecycle", suspect="lifecycle",
                )  # fmt: skip
            if resource.delete is not None and operation != resource.delete:
                yield _away(builder, resource, resource.role)


def _move(builder: Builder, operation: Operation, body: Any, learns: str) -> Probe:
    where = pointer_of(operation)
    return Probe(
        operation, operation.method, builder.path(operation), "moves", learns, where, body=body, suspect="lifecycle",
        keeps=True,
    )  # fmt: skip


def _ways(builder: Builder, resource: Resource) -> Iterator[tuple[Operation, Any]]:
    """The requests by which a record may move."""
    lifecycle = resource.lifecycle
    assert lifecycle is not None
    by = {name for move in lifecycle.moves for name in move.by}
    for operation in builder.catalogue.document.operations.values():
        if operation.id not in by or f"{{{resource.key}}}" not in operation.path or not builder.may(operation):
            continue
        schema = builder.catalogue.body(operation)
        field = (schema or {}).get("properties", {}).get(lifecycle.field)
        if field is None:
            yield operation, None if schema is None else {}
            continue
        node = builder.catalogue.document.resolve(field)
        options = [True, False] if node.get("type") == "boolean" else node.get("enum", ())
        yield from ((operation, {lifecycle.field: option}) for option in options if option is not None)


def _roads(
    builder: Builder, resource: Resource, ways: list[tuple[Operation, Any]]
) -> dict[str, tuple[dict[str, Any], list[Any]]]:
    """How a record gets into each state: members of the body that makes it, and the requests after that."""
    lifecycle = resource.lifecycle
    assert lifecycle is not None
    makers = {operation.id for operation in resource.creates}
    known = (builder.catalogue.body(resource.creates[0]) or {}).get("properties", {})
    roads: dict[str, tuple[dict[str, Any], list[Any]]] = {}
    for move in lifecycle.moves:
        if move.from_ == "new" and makers & set(move.by):
            chosen = {lifecycle.field: _state(lifecycle.field, move.to)}
            roads[move.to] = (chosen if lifecycle.field in known else {}, [])
    while True:
        for move in lifecycle.moves:
            if move.from_ in roads and move.to not in roads and move.to != "deleted":
                way = next((w for w in ways if w[0].id in move.by and _leads(w, lifecycle.field, move.to)), None)
                if way is not None:
                    begin, steps = roads[move.from_]
                    roads[move.to] = (begin, [*steps, way])
                    break
        else:
            return roads


def _leads(way: tuple[Operation, Any], field: str, state: str) -> bool:
    body = way[1]
    return not body or body.get(field) == _state(field, state)


def _state(field: str, state: str) -> Any:
    """What a member has in a state: a truth value where the state is `active` or not."""
    return state == "active" if field.startswith("is_") else state


def keyholders(builder: Builder) -> Generator[Probe, Seen, dict[str, str]]:
    """Make API keys, each without one scope; answers their roles by the scope that is missing."""
    document = builder.catalogue.document
    create = next(
        (o for o in document.operations.values() if o.method == "POST" and "scopes" in _keys(builder.body(o))), None
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
                operation, "GET", operation.path, _SAYS_YES, learns, where, credential=key, suspect="auth",
                keeps=False, about=create,
            )  # fmt: skip
            if seen.target.status not in (404, 405):
                return seen.target.status != 401
    return True


def _parameter_at(operation: Operation, name: str) -> str:
    for number, parameter in enumerate(operation.parameters):
        if parameter.name.lower() == name:
            return pointer_of(operation, "parameters", str(number))
    return pointer_of(operation)


def _keys(body: Any) -> set[str]:
    return set(body) if isinstance(body, dict) else set()


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.startswith("{the "):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner)


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(inner, old, new) for name, inner in value.items()}
    if isinstance(value, list):
        return [_replaced(inner, old, new) for inner in value]
    return new if value == old else value


def _found(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return value[name] if name in value else next(filter(None, (_found(v, name) for v in value.values())), None)
    return None


def nowhere(text: str) -> str:
    """An id that nothing has, drawn from a text."""
    return str(UUID(bytes=text.encode().ljust(16, b"v")[:16], version=4))
