"""Unique values are unique, what is deleted is gone, and moves are as allowed."""

from collections.abc import Iterable, Iterator
from typing import Any

from ....contract.document import Operation
from ....contract.pointers import below
from ....core.clock import SECOND, iso
from ..catalogue import Resource, body_of, path_names, pointer_of, record_of
from ..comparing import instant_of
from ..probes import FOREIGN, Builder, Journey, Probe, Seen, placeholder
from .listing import narrowing

_VALID = 3.0  # seconds of a key
_Way = tuple[Operation, Any]
"""A request by which a record may move: the operation and its body."""


def unique(builder: Builder, resource: Resource) -> Journey:
    """A value that must be unique, for a second record and for a change, also in
    another spelling.
    """
    if resource.delete is not None or resource.role not in builder.present:
        yield builder.make(resource, **builder.body(resource.create))
    for key in builder.document.unique.get(resource.schema, ()):
        member = key.members[0]
        value = builder.present[resource.role].get(member)
        if key.code is None or not isinstance(value, str):
            continue
        spelled = {
            "": value,
            "punctuation": f"{value[:3]}.{value[3:6]}.{value[6:9]}-{value[9:]}",
            "blanks": f" {value.replace(' ', '  ')} ",
            "case": value.upper(),
        }
        for operation in filter(None, (resource.create, resource.update)):
            others = builder.plain(operation) if operation == resource.create else {}
            for ignored in ("", *key.ignores):
                seen = yield builder.probe(
                    operation,
                    "persists",
                    f"{member}{ignored and f' in other {ignored}'}: that another record has",
                    below(body_of(operation), "properties", member),
                    path=operation.path.replace(f"{{{resource.key}}}", f"{{{resource.role} more}}"),
                    body={**others, member: spelled[ignored]},
                    suspect="uniqueness",
                )
                if builder.is_lasting and not seen.is_alike:
                    break


def remembers(builder: Builder, resource: Resource) -> Journey:
    """What the parents of a record count, what the list has of it, and what is left of it when it
    was deleted.
    """
    create, delete, listing = resource.create, resource.delete, resource.list
    if delete is not None or resource.role not in builder.present:
        yield builder.make(resource)
    query = {} if listing is None else narrowing(builder, listing, resource)

    def probe(asked: Operation, learns: str, suspect: str, **more: Any) -> Probe:
        return builder.probe(asked, "persists", learns, suspect=suspect, **more)

    def listed(learns: str, suspect: str, about: Operation) -> Iterator[Probe]:
        if listing is not None and query:
            more = {"pointer": pointer_of(about), "about": about, "query": query}
            yield probe(listing, f"{learns}, in the list", suspect, narrowed=True, **more)

    yield from listed("the created record", "not-persisted", create)
    for parent in builder.needs(create):
        for each in builder.reads_about(parent):
            yield probe(each, f"{parent.role} after {create.id}", "figures")
    if delete is None or not builder.may(delete):
        return
    seen = yield probe(delete, "delete", "lifecycle")
    if not seen.is_alike:
        return
    for parent in builder.needs(create):
        for each in builder.reads_about(parent):
            yield probe(each, f"{parent.role} after {delete.id}", "figures")
    yield from listed("the deleted record", "not-deleted", delete)
    yield probe(delete, "delete again", "not-deleted")
    update = resource.update
    if update is not None and builder.may(update):
        yield probe(update, "the deleted record", "not-deleted", body=builder.body(update))
    builder.present.pop(resource.role)


def stays(builder: Builder, resource: Resource) -> Journey:
    """A record is as it was when another one is created with other texts in the same part, such as
    an order for the same customer, who has another name by then.
    """
    create, first, body = resource.create, f"{resource.role} first", builder.plain(resource.create)
    changed = {
        name: {**part, "name": builder.variants.text(12)}
        for name, part in body.items()
        if isinstance(part, dict) and "name" in part
    }
    if not changed or resource.read is None:
        return
    yield builder.make(resource, first)
    yield builder.make(resource, f"{resource.role} more", **changed)
    yield builder.probe(
        resource.read,
        "persists",
        f"a read after another {create.id}",
        body_of(create),
        path=resource.at(placeholder(first)),
        about=create,
        suspect="not-persisted",
    )


def expires(builder: Builder, keys: Resource) -> Journey:
    """A key that was valid for some seconds is refused after them, by the clock of the backend."""

    def make(role: str, **more: Any) -> Probe:
        return builder.make(keys, f"{keys.role} {role}", scopes=builder.assignable(), **more)

    ends = _created((yield make("before"))) + _VALID
    yield make("ended", expires_at=iso(int(ends * SECOND)))
    yield _VALID + 1
    if _created((yield make("after"))) > ends:
        yield _refused(builder, keys, "expires_at", "ended", "a key that has expired", 401)


def limited(builder: Builder, keys: Resource) -> Journey:
    """A key for other addresses is refused, also where one of them begins as this machine's."""
    addresses = ["203.0.113.9", "127.0.0.10"]
    more = {"scopes": builder.assignable(), "allowed_ips": addresses}
    yield builder.make(keys, f"{keys.role} elsewhere", **more)
    learns = f"a key for {' and '.join(addresses)} alone"
    yield _refused(builder, keys, "allowed_ips", "elsewhere", learns, 403)


def _refused(
    builder: Builder, keys: Resource, member: str, role: str, learns: str, status: int
) -> Probe:
    """A key is refused for what a member said when it was made."""
    return builder.probe(
        builder.document.operations["listProjects"],
        "rejects",
        learns,
        below(body_of(keys.create), "properties", member),
        about=keys.create,
        credential=placeholder(f"{keys.role} {role} secret"),
        suspect="auth",
        expects=status,
    )


def isolated(builder: Builder, resource: Resource) -> Journey:
    """Another merchant neither reads a record nor changes it."""
    for operation in builder.document.operations.values():
        is_about = path_names(operation) == [resource.key] and builder.may(operation)
        if not is_about or not builder.other:
            continue
        yield from builder.ready(resource)
        yield builder.probe(
            operation,
            "rejects",
            FOREIGN,
            body=builder.body(operation),
            credential=builder.other,
            suspect="auth",
            expects=404,
        )


def loses(builder: Builder, keys: Resource) -> Journey:
    """What an update or a deletion takes from a key is gone, also if the key was used before."""
    kept = [each for each in builder.assignable() if each != "projects:read"]
    yield from _after(builder, keys, "a key that has lost projects:read", "scope", scopes=kept)
    yield from _after(builder, keys, "a key that was switched off", "auth", is_active=False)
    yield from _after(builder, keys, "a key that was deleted", "auth")


def _after(builder: Builder, keys: Resource, learns: str, suspect: str, **body: Any) -> Journey:
    """A new key is used, and used again after an update; without a body, after its deletion."""
    changed = keys.update if body else keys.delete
    if changed is None or not builder.may(changed):
        return
    role = f"{keys.role} changed"
    credential = placeholder(f"{role} secret")
    where = below(body_of(changed), "properties", *body) if body else pointer_of(changed)
    listing = builder.document.operations["listProjects"]
    yield builder.make(keys, role, scopes=builder.assignable())
    yield builder.probe(listing, "accepts", "a key with every scope", credential=credential)
    seen = yield builder.probe(
        changed,
        "accepts",
        "a key that was used",
        where,
        path=keys.at(placeholder(role)),
        body=body or None,
    )
    if not seen.both_accept:
        return
    yield builder.probe(
        listing, "rejects", learns, where, about=changed, credential=credential, suspect=suspect
    )


def _created(seen: Seen) -> float:
    """When the record in an answer was made, in seconds; 0 if it does not say so."""
    record = record_of(seen.target.json())
    return instant_of(record.get("createdAt", record.get("created_at"))) or 0.0


# -- transitions


def transitions(builder: Builder, resource: Resource) -> Iterator[Journey]:
    """What is allowed to a record in each of its states, and in those of the records to which it
    belongs: a journey each, since one that departs tells nothing of others.
    """
    for state in builder.options(resource.update, _field(resource)):
        for way in _ways(builder, resource):
            yield _while(builder, resource, state, resource, [way])
    writers = (*resource.creates, resource.update, resource.delete)
    writes = [(each, None) for each in writers if each]
    for holder in builder.needs(resource.create):
        changes = [(each, None) for each in (holder.update, holder.delete) if each]
        yield _while(builder, holder, None, resource, changes)
        for state in builder.options(holder.update, _field(holder)):
            yield _while(builder, holder, state, resource, writes)


def _while(
    builder: Builder, holder: Resource, state: Any, record: Resource, ways: Iterable[_Way]
) -> Journey:
    """What is allowed while a holder of the record, or it itself, is in a state."""
    field, is_own = _field(holder), holder == record
    begins = is_own and state in builder.options(record.create, field)
    yield builder.make(record, **({field: state} if begins else {}))
    if holder.update is not None and state is not None and not begins:
        body = {field: state}
        seen = yield _move(builder, holder.update, f"to {state}", body)
        if not seen.both_accept:
            return
    when = f"while {holder.role} is {state}" if state is not None else f"that has {record.role}"
    for operation, body in ways:
        sent = "".join(f" {name}={value}" for name, value in (body or {}).items())
        learns = f"{operation.id}{sent} {f'from {state}' if is_own else when}"
        yield _move(builder, operation, learns, body)
    if not is_own:  # some kinds are limited in number
        for role in reversed([*builder.present]):
            removal = builder.removal(role)
            if removal is not None:
                yield removal
        builder.present.clear()


def _move(builder: Builder, operation: Operation, learns: str, body: Any) -> Probe:
    sent, where = builder.body(operation) if body is None else body, pointer_of(operation)
    more = {"group": "transitions", "suspect": "lifecycle"}
    return builder.write(operation, sent, learns, where, **more)


def _ways(builder: Builder, resource: Resource) -> Iterator[_Way]:
    """The requests by which a record may move."""
    if resource.lifecycle is None:
        return
    by, field = {name for move in resource.lifecycle.moves for name in move.by}, _field(resource)
    for operation in builder.document.operations.values():
        is_of_record = operation.id in by and f"{{{resource.key}}}" in operation.path
        if not is_of_record or not builder.may(operation):
            continue
        if field not in (builder.body(operation) or ()):
            yield operation, None  # also a change of other members: a state may allow none
        for option in builder.options(operation, field):
            yield operation, {field: option}


def _field(resource: Resource) -> str:
    return "status" if resource.lifecycle is None else resource.lifecycle.field
