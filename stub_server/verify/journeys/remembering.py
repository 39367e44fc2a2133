"""Whether reads show what was created, changed and deleted, and whether a repeated request has one effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...contract.document import Operation
from ...kernel.record import UniqueKey
from ..building import SETUP, Builder
from ..places import below, body_of, pointer_of
from ..probe import Journey, Probe
from ..resources import Resource
from .finding import narrowing

_SAME_BODY = "the same request with the same Idempotency-Key"
_OTHER_BODY = "another body with the same Idempotency-Key"


def repeats(builder: Builder, operation: Operation) -> Journey:
    """An operation with an Idempotency-Key, then the same request again, and another body with the same key."""
    if not operation.takes_key or not builder.may_prepare(operation):
        return
    yield from builder.prepare(operation)
    body, key = builder.body(operation), {"Idempotency-Key": builder.fresh.tag}
    pointer = _key_at(operation)
    other = builder.fresh.renewed({**(body or {}), **_another(builder, operation)})
    for learns, sent, suspect in (
        ("with an Idempotency-Key", body, ""),
        (_SAME_BODY, body, "idempotency"),
        (_OTHER_BODY, other, "idempotency"),
    ):
        yield builder.probe(
            operation, "remembers", learns, pointer, body=sent, headers=key, suspect=suspect, keeps=False
        )


def _another(builder: Builder, operation: Operation) -> dict[str, Any]:
    """A member with another value; in a body without text, all members."""
    properties = (builder.catalogue.body(operation) or {}).get("properties", {})
    for name, node in properties.items():
        schema = builder.catalogue.document.resolve(node)
        if schema.get("type") == "string" and "enum" not in schema and "format" not in schema:
            return {name: "verify otherwise"}
    return {name: builder.variants.sample(builder.catalogue.document.resolve(n)) for name, n in properties.items()}


def remembers(builder: Builder, resource: Resource) -> Journey:
    """Create a record, change it and delete it, and read it after each."""
    create = resource.creates[0]
    if not builder.may_prepare(create):
        return
    yield from builder.prepare(create)
    body = builder.body(create)
    key = {"Idempotency-Key": builder.fresh.tag} if create.takes_key else {}

    def probe(operation: Operation, learns: str, suspect: str, pointer: str = "", **more: Any) -> Probe:
        return builder.probe(operation, "remembers", learns, pointer, suspect=suspect, **more)

    def read(learns: str, suspect: str, about: Operation) -> Iterator[Probe]:
        if resource.read is not None:
            yield probe(resource.read, learns, suspect, pointer_of(about), about=about)

    def listed(learns: str, suspect: str, about: Operation) -> Iterator[Probe]:
        if resource.list is not None and (query := narrowing(builder, resource, resource.list)):
            yield probe(resource.list, learns, suspect, pointer_of(about), query=query, narrowed=True, about=about)

    yield probe(create, "create", "", body=body, makes=resource.role, headers=key)
    yield from read("the created record", "not-persisted", create)
    yield from listed("the created record, in the list", "not-persisted", create)
    if key:
        for learns, sent in ((_SAME_BODY, body), (_OTHER_BODY, builder.body(create))):
            yield probe(create, learns, "idempotency", _key_at(create), body=sent, headers=key)
    for parent in builder.needs(create):
        if parent.read is not None:
            yield probe(parent.read, f"{parent.role} after the create", "figures")
            stats = builder.catalogue.document.operations.get("getProjectStats")
            if parent.key == "projectId" and stats is not None:
                yield probe(stats, "the statistics after the create", "figures")
    if (update := resource.update) is not None:
        for member, value in list(builder.body(update).items())[:4]:
            if resource.lifecycle is None or member != resource.lifecycle.field:
                yield probe(update, f"change {member} alone", "not-persisted", body={member: value})
                yield from read("the changed record", "not-persisted", update)
                yield from listed("the changed record, in the list", "not-persisted", update)
    if (delete := resource.delete) is not None:
        yield probe(delete, "delete", "not-deleted")
        yield from read("the deleted record", "not-deleted", delete)
        yield probe(delete, "delete again", "not-deleted")
        yield from listed("the list after the delete", "not-deleted", delete)


def unique(builder: Builder, resource: Resource) -> Journey:
    """A second record with a value that must be unique, also in another spelling."""
    create = resource.creates[0]
    if not builder.may_prepare(create):
        return
    yield from builder.prepare(create)
    body = builder.body(create)
    yield builder.probe(create, SETUP, "create", body=body, makes=resource.role)
    for member, again in _duplicates(builder.catalogue.document.unique.get(resource.schema, ()), body):
        pointer = below(body_of(create), "properties", member)
        copied = {**builder.body(create), member: again}
        learns = f"{member} that another record has"
        yield builder.probe(create, "remembers", learns, pointer, body=copied, keeps=False, is_checked=False)


def _duplicates(keys: Iterable[UniqueKey], body: Any) -> Iterator[tuple[str, str]]:
    """Members of unique keys, as they were sent and in spellings that count as equal."""
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


def _key_at(operation: Operation) -> str:
    """The pointer to the parameter Idempotency-Key, else to the operation."""
    for number, parameter in enumerate(operation.parameters):
        if parameter.name.lower() == "idempotency-key":
            return pointer_of(operation, "parameters", number)
    return pointer_of(operation)
