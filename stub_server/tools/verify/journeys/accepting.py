"""What an operation accepts, stores and refuses: each member and parameter, one limit at a time."""

from collections.abc import Callable, Generator, Sequence
from typing import Any

from ....contract.document import JSON, Operation
from ....core.record import Body
from ..catalogue import Resource, below, body_of, pointer_of, queried, role_of
from ..probes import (
    Asked,
    Builder,
    Journey,
    Probe,
    Seen,
    Sent,
    placeholder,
    query_text,
    roles_in,
    without_role,
)
from ..variants import Variant

Send = Callable[..., Sent]
_KEY = "Idempotency-Key"


def accepts(builder: Builder, operation: Operation) -> Journey:
    """The parameters and the body of an operation, one limit at a time."""
    body, made, changed = (
        builder.body(operation),
        builder.catalogue.made_by(operation),
        builder.changed_by(operation),
    )
    if operation.takes_key and made is None:
        is_alike = yield from repeats(builder, operation, body)
        if not is_alike and changed is None:
            return  # it refuses any body
    if body is None and operation.method == "GET":
        yield builder.probe(operation, "accepts", "a plain request")
    yield from parameters(builder, operation)
    if made is not None:
        yield from _creates(builder, made, operation, body)
    elif changed is not None:
        yield from _updates(builder, changed, operation, body)
    elif body is not None:
        send, schema = _sender(builder, operation), operation.body or {}
        seen = yield from send(builder.variants.smallest(schema, body), "the required members")
        if seen.is_alike:  # else it refuses any body
            yield from send(builder.variants.fullest(schema, body), "all members")
            yield from _limits(builder, operation, body, send)


def _creates(builder: Builder, resource: Resource, operation: Operation, body: Any) -> Journey:
    """Create records with few members, with each one and with all; then with the values
    at the limits.
    """
    schema, variants, send = operation.body or {}, builder.variants, _sender(builder, operation)
    smallest, full = variants.smallest(schema, body), variants.fullest(schema, body)
    alone = [smallest]
    for name in full:
        if name in smallest:
            continue
        value = variants.another(builder.properties(operation)[name], name, full[name])
        alone.append(variants.renewed(smallest) | {name: full[name] if value is None else value})
    if resource.delete is None and len(alone) > 2:
        # each member is left out of some: a record that stays behind would show no more
        alone.pop(0)
    for few in [each for each in alone if variants.accepts(schema, each)]:
        if operation.takes_key and few is alone[0]:
            yield from repeats(builder, operation, few)
        else:
            names = "".join(f" and {name}" for name in few if name not in smallest)
            yield from send(few, f"the required members{names}")
    for example in builder.examples(operation):
        yield from send(example, "an example of the contract")
    full = builder.harmless(operation, variants.renewed(full))
    seen = yield builder.probe(
        operation, "accepts", "all members", body_of(operation), body=full, makes=resource.role
    )
    if seen.both_accept:
        builder.present[resource.role] = full
    yield from _limits(builder, operation, body, send)


def _updates(builder: Builder, resource: Resource, operation: Operation, body: Any) -> Journey:
    """Change each member alone, and all together, always to another value; then to the values at
    the limits.
    """
    properties, pointer = builder.properties(operation), body_of(operation)
    stored, send = builder.present[resource.role], _sender(builder, operation)

    def another(name: str) -> Any:
        old, role = stored.get(name), role_of(name.removesuffix("s"))
        if role not in builder.present:
            return builder.variants.another(properties[name], name, old)
        if name.endswith("s"):
            return [] if old else [placeholder(role)]
        # such as the project of a webhook
        return placeholder(role) if old is None else None

    together = {}
    for name in properties:
        value = another(name)
        if value is None and stored.get(name) is None:
            continue
        where = f"{pointer}/properties/{name}"
        seen = yield from send({name: value}, f"change {name} alone", where, "persists")
        if seen.twin.is_success:
            together[name] = another(name)
    seen = yield from send(together, "change all members", pointer, "persists")
    # Rules bind some together, such as a document and its type.
    if not seen.twin.is_success or together.keys() < properties.keys():
        for create in resource.creates:
            for example in builder.examples(create):
                changes = {name: value for name, value in example.items() if name in properties}
                yield from send(
                    changes, "change to an example of the contract", pointer, "persists"
                )
        yield from send(together, "change all members back", pointer, "persists")
    changed = {name: value for name, value in together.items() if isinstance(value, dict)} | body
    if builder.variants.accepts(operation.body or {}, changed):
        yield from _limits(builder, operation, changed, send)


def _sender(builder: Builder, operation: Operation) -> Send:
    """A function that sends a body, deletes what it creates, and makes a record anew after answers
    that differ.
    """
    made, changed = builder.catalogue.made_by(operation), builder.changed_by(operation)
    makes, of_path = f"{made.role} more" if made else "", builder.resource_of(operation)

    def send(
        body: Any, learns: str, pointer: str = "", group: str = "accepts", *, is_quiet: bool = False
    ) -> Sent:
        sent, where = builder.harmless(operation, body), pointer or body_of(operation)
        seen: Seen = yield builder.probe(
            operation, group, learns, where, body=sent, makes=makes, is_quiet=is_quiet
        )
        if made is not None:
            if seen.both_accept:
                builder.present[makes] = sent
                yield from builder.delete(made, makes)
        elif of_path is not None and not seen.is_alike:
            builder.present.pop(of_path.role, None)
            yield from builder.prepare(operation)
        elif changed is not None and seen.both_accept:
            builder.present[changed.role] |= sent
        return seen

    return send


def repeats(builder: Builder, operation: Operation, body: Any) -> Generator[Asked, Seen, bool]:
    """A body with an Idempotency-Key, then the same request again, and another body with the same
    key.

    Returns whether both accepted or both refused the first.
    """
    number, parameter = next(
        (number, each) for number, each in enumerate(operation.parameters) if each.name == _KEY
    )
    pointer, key = pointer_of(operation, "parameters", number), builder.variants.text(20)

    def probe(group: str, learns: str, body: Any, key: str, **more: str) -> Probe:
        headers = {_KEY: key}
        return builder.probe(operation, group, learns, pointer, body=body, headers=headers, **more)

    made = builder.catalogue.made_by(operation)
    makes = f"{made.role} more" if made else ""
    seen = yield probe("persists", "with an Idempotency-Key", body, key, makes=makes)
    if not seen.is_alike:
        return False
    for learns, sent in (
        ("the same request with the same Idempotency-Key", body),
        (
            "another body with the same Idempotency-Key",
            _another(builder, operation, body or {}),
        ),
    ):
        seen = yield probe("persists", learns, sent, key, suspect="idempotency")
        if seen.has_departed:  # what the backend has is no longer what the twins have
            builder.present.clear()
            yield from builder.prepare(operation)
            break
    longest = builder.document.resolve(parameter.schema).get("maxLength")
    if longest is not None:
        long, other = builder.variants.text(longest + 1), builder.variants.renewed(body)
        yield probe("rejects", f"{_KEY}: too long", other, long)
    return True


def _another(builder: Builder, operation: Operation, body: Body) -> Any:
    """A body in which one member has another value."""
    for name, node in builder.properties(operation).items():
        value = builder.variants.another(node, name, body.get(name))
        if value is not None and builder.variants.accepts(
            operation.body or {}, {**body, name: value}
        ):
            return {**body, name: value}
    return body


def _limits(builder: Builder, operation: Operation, body: Any, send: Send) -> Journey:
    """The values at the limits of a body, as many in one request as the backend accepts together;
    then those beyond.
    """
    schema, pointer = operation.body or {}, body_of(operation)
    variants = [*builder.variants.of_body(schema, pointer, body)]
    # Each document makes a customer that stays behind.
    accepted = [each for each in variants if each.is_accepted and each.place[-1] != "document"]
    yield from _anew(builder, operation)
    for group in builder.variants.groups(schema, body, accepted):
        yield from _halves(builder, body, group, send)
    yield from _anew(builder, operation)
    for variant in variants:
        if not variant.is_accepted:
            sent = builder.variants.with_parts(body, [variant])
            yield from send(sent, variant.tries, variant.pointer, "rejects")
    for role in sorted(set(roles_in(body))):
        other = builder.variants.renewed(without_role(body, role))
        member = next(name for name in body if role in roles_in(body[name]))
        where = f"{pointer}/properties/{member}"
        yield from send(other, f"{role} that does not exist", where, "rejects")
    for media, sent, tries in (
        ("text/plain", b"verify", "a body that is not JSON"),
        (JSON, b'{"name": ', "incomplete JSON"),
        (JSON, b"[]", "a list in place of an object"),
    ):
        content = pointer_of(operation, "requestBody", "content")
        yield builder.probe(operation, "rejects", tries, content, body=sent, media=media)


def _anew(builder: Builder, operation: Operation) -> Journey:
    """Make another record of a kind with states before an update: one in its last state takes no
    other change.
    """
    changed = builder.changed_by(operation)
    if changed is not None and changed.lifecycle is not None:
        builder.present.pop(changed.role, None)
        yield from builder.prepare(operation)


def _halves(
    builder: Builder, body: Any, group: Sequence[Variant], send: Send
) -> Generator[Asked, Seen, bool]:
    """Send values together, else in halves; whether one of them departs."""
    value = builder.variants.with_parts(body, group)
    if len(group) == 1:
        seen = yield from send(value, group[0].tries, group[0].pointer)
        return not seen.is_alike
    learns = f"{len(group)} members with other values"
    seen = yield from send(value, learns, is_quiet=True)
    if seen.both_accept:
        return False
    half = len(group) // 2
    first = yield from _halves(builder, body, group[:half], send)
    second = yield from _halves(builder, body, group[half:], send)
    if not (first or second or seen.is_alike):
        yield from send(builder.variants.with_parts(body, group), learns)
        return True
    return first or second


def parameters(builder: Builder, operation: Operation) -> Journey:
    """Values of each parameter of a query."""
    for name, (pointer, schema) in queried(operation).items():
        for each in builder.variants.of_parameter(schema, below(pointer, "schema"), name):
            group = "accepts" if each.is_accepted else "rejects"
            query = {name: query_text(each.value)}
            yield builder.probe(operation, group, each.tries, each.pointer, query=query)
