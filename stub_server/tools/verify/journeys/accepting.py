"""What an operation accepts, stores and refuses: each member and parameter, one limit at a time."""

from collections.abc import Generator, Sequence
from typing import Any

from ....contract.document import JSON, Operation
from ....core.record import Body
from ..catalogue import Resource, below, body_of, pointer_of, queried
from ..probes import (
    UNKNOWN_ID,
    Asked,
    Builder,
    Journey,
    Probe,
    Seen,
    placeholder,
    query_text,
)
from ..variants import Variant

_KEY = "Idempotency-Key"


def accepts(builder: Builder, operation: Operation) -> Journey:
    """The parameters and the body of an operation, one limit at a time."""
    body, variants, schema = builder.body(operation), builder.variants, operation.body or {}
    made, changed = builder.catalogue.made_by(operation), builder.changed_by(operation)
    if operation.takes_key and made is None:
        is_alike = yield from repeats(builder, operation, body)
        if not is_alike:
            return  # it refuses any body
    if operation.method == "GET":
        yield builder.probe(operation, "accepts", "a plain request")
    yield from parameters(builder, operation)
    if body is None:
        return
    if made is not None:
        yield from _creates(builder, made, operation, body)
    elif changed is not None:
        body = yield from _updates(builder, changed, operation, body)
    else:
        smallest = variants.smallest(schema, body)
        seen = yield builder.write(operation, smallest, "the required members")
        if not seen.is_alike:
            return
        yield builder.write(operation, variants.fullest(schema, body), "all members")
    if variants.accepts(schema, body):
        yield from _limits(builder, operation, body)


def _creates(builder: Builder, resource: Resource, operation: Operation, body: Any) -> Journey:
    """Create records with few members, with each one and with all."""
    schema, variants = operation.body or {}, builder.variants
    smallest, full = variants.smallest(schema, body), variants.fullest(schema, body)
    alone = {"": smallest}
    for name in [name for name in full if name not in smallest]:
        value = variants.another(builder.properties(operation)[name], name, full[name])
        few = variants.renewed(smallest) | {name: full[name] if value is None else value}
        if variants.accepts(schema, few):
            alone[f" and {name}"] = few
    if resource.delete is None and len(alone) > 2:
        # each member is left out of some: a record that stays behind would show no more
        del alone[""]
    if operation.takes_key:
        yield from repeats(builder, operation, alone.pop(next(iter(alone))))
    for name, few in alone.items():
        yield builder.write(operation, few, f"the required members{name}")
    for example in builder.examples(operation):
        yield builder.write(operation, example, "an example of the contract")
    yield builder.write(operation, variants.renewed(full), "all members", makes=resource.role)


def _updates(
    builder: Builder, resource: Resource, operation: Operation, body: Any
) -> Generator[Asked, Seen, Any]:
    """Change each member alone, and all together, always to another value.

    Returns a body with the values of all objects and lists.
    """
    properties, pointer = builder.properties(operation), body_of(operation)
    yield from builder.ready(resource)
    stored, together = builder.present[resource.role], Body()

    def another(name: str) -> Any:
        old, role = stored.get(name), builder.named_by(name)
        if not role:
            return builder.variants.another(properties[name], name, old)
        if name.endswith("s"):
            return [] if old else [placeholder(role)]
        # such as the project of a webhook
        return placeholder(role) if old is None else None

    def change(to: Body, learns: str, where: str = "") -> Probe:
        return builder.write(operation, to, f"change {learns}", where, group="persists")

    for name in properties:
        value = another(name)
        if value is None and stored.get(name) is None:
            continue
        seen = yield change({name: value}, f"{name} alone", below(pointer, "properties", name))
        if seen.twin.is_success:
            stored = builder.present.get(resource.role, {})
            together[name] = another(name)
    seen = yield change(together, "all members")
    # Rules bind some together, such as a document and its type.
    if not seen.twin.is_success or together.keys() < properties.keys():
        for create in resource.creates:
            for example in builder.examples(create):
                known = {name: value for name, value in example.items() if name in properties}
                yield change(known, "to an example of the contract")
        yield change(together, "all members back")
    return {
        name: value for name, value in together.items() if isinstance(value, dict | list)
    } | body


def repeats(builder: Builder, operation: Operation, body: Any) -> Generator[Asked, Seen, bool]:
    """A body with an Idempotency-Key, then the same request again, and another body with the same
    key.

    Returns whether both accepted or both refused the first.
    """
    names = [each.name for each in operation.parameters]
    number, key = names.index(_KEY), builder.variants.text(20)
    pointer = pointer_of(operation, "parameters", number)

    def probe(group: str, learns: str, body: Any, key: str, suspect: str = "") -> Probe:
        more = {"headers": {_KEY: key}, "suspect": suspect}
        if suspect:
            more["makes"] = ""
        return builder.write(operation, body, learns, pointer, group=group, **more)

    seen = yield probe("persists", "with an Idempotency-Key", body, key)
    if not seen.is_alike:
        return False
    other = _another(builder, operation, body or {})
    for learns, sent in (
        ("the same request with the same", body),
        ("another body with the same", other),
    ):
        seen = yield probe("persists", f"{learns} {_KEY}", sent, key, "idempotency")
        if seen.has_departed:  # what the backend has is no longer what the twins have
            builder.present.clear()
            break
    longest = builder.document.resolve(operation.parameters[number].schema).get("maxLength")
    if longest is not None:
        long, other = builder.variants.text(longest + 1), builder.variants.renewed(body)
        yield probe("rejects", f"{_KEY}: too long", other, long)
    return True


def _another(builder: Builder, operation: Operation, body: Body) -> Any:
    """A body in which one member has another value."""
    for name, node in builder.properties(operation).items():
        other = body | {name: builder.variants.another(node, name, body.get(name))}
        if other[name] is not None and builder.variants.accepts(operation.body or {}, other):
            return other
    return body


def _limits(builder: Builder, operation: Operation, body: Any) -> Journey:
    """The values at the limits of a body, as many in one request as the backend accepts together;
    then those beyond.
    """
    schema = operation.body or {}
    variants = [*builder.variants.of_body(schema, body_of(operation), body)]
    # Each document makes a customer that stays behind.
    accepted = [each for each in variants if each.is_accepted and each.place[-1] != "document"]
    _begin(builder, operation)
    for group in builder.variants.groups(schema, body, accepted):
        yield from _together(builder, operation, body, group)
    _begin(builder, operation)
    for variant in variants:
        if not variant.is_accepted:
            sent = builder.variants.with_parts(body, [variant])
            yield builder.write(operation, sent, variant.tries, variant.pointer, group="rejects")
    yield from _refused(builder, operation, body)


def _refused(builder: Builder, operation: Operation, body: Any) -> Journey:
    """References to records that do not exist, and bodies that are no JSON object."""
    for member in builder.properties(operation):
        role = builder.named_by(member)
        if not role:
            continue
        unknown = [UNKNOWN_ID] if member.endswith("s") else UNKNOWN_ID
        other = builder.variants.renewed(body) | {member: unknown}
        where = below(body_of(operation), "properties", member)
        yield builder.write(operation, other, f"{role} that does not exist", where, group="rejects")
    content = pointer_of(operation, "requestBody", "content")
    for media, raw, tries in (
        ("text/plain", b"verify", "a body that is not JSON"),
        (JSON, b'{"name": ', "incomplete JSON"),
        (JSON, b"[]", "a list in place of an object"),
    ):
        yield builder.probe(operation, "rejects", tries, content, body=raw, media=media)


def _begin(builder: Builder, operation: Operation) -> None:
    """Have what moves a record change another one: one in its last state takes no other change."""
    moved = builder.resource_of(operation)
    if moved is None or moved.lifecycle is None or operation in moved.creates:
        return
    if any(operation.id in move.by for move in moved.lifecycle.moves):
        builder.present.pop(moved.role, None)


def _together(
    builder: Builder, operation: Operation, body: Any, group: Sequence[Variant]
) -> Journey:
    """Send values together; if they are refused, each alone."""

    def together(**more: Any) -> Probe:
        sent = builder.variants.with_parts(body, group)
        return builder.write(operation, sent, f"{len(group)} members with other values", **more)

    is_together = len(group) > 1
    if is_together:
        seen = yield together(is_quiet=True)
        if seen.both_accept:
            return
    are_alike = []
    for each in group:
        sent = builder.variants.with_parts(body, [each])
        alone = yield builder.write(operation, sent, each.tries, each.pointer)
        are_alike.append(alone.is_alike)
    if is_together and all(are_alike) and not seen.is_alike:
        yield together()


def parameters(builder: Builder, operation: Operation) -> Journey:
    """Values of each parameter of a query."""
    for name, (pointer, schema) in queried(operation).items():
        for each in builder.variants.of_parameter(schema, below(pointer, "schema"), name):
            group = "accepts" if each.is_accepted else "rejects"
            query = {name: query_text(each.value)}
            yield builder.probe(operation, group, each.tries, each.pointer, query=query)
