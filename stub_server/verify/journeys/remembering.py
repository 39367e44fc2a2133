"""What is created, changed and deleted is so when it is read again; what is sent twice is done once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ...contract.document import Operation
from ...kernel.record import UniqueKey
from ..building import Builder
from ..places import below, body_of, pointer_of
from ..probe import Probe, Steps
from ..resources import Resource
from .accepting import ready
from .finding import narrowing
from .parts import parameter_at


def repeats(builder: Builder, operation: Operation) -> Steps:
    """An operation with a key for idempotency, sent again alike and with another body."""
    if not operation.takes_key or not builder.may_make(operation):
        return
    yield from ready(builder, operation)
    body, key = builder.body(operation), {"Idempotency-Key": builder.fresh.tag}
    pointer = parameter_at(operation, "idempotency-key")

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
        idempotency = parameter_at(create, "idempotency-key")
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
    path, schema = builder.path(create), body_of(create)
    body = builder.body(create)
    yield Probe(create, create.method, path, "setup", "create", pointer_of(create), body=body, makes=resource.role)
    for member, again in duplicates(builder.catalogue.document.unique.get(resource.schema, ()), body):
        pointer = below(schema, "properties", member)
        copied = {**builder.body(create), member: again}
        yield Probe(
            create, create.method, path, "remembers", f"{member} once more", pointer, body=copied, keeps=False,
            is_checked=False,
        )  # fmt: skip


def duplicates(keys: Iterable[UniqueKey], body: Any) -> Iterator[tuple[str, str]]:
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
