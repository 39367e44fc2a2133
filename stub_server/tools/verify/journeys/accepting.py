"""What an operation accepts, stores and refuses: each member and parameter, one limit at a time."""

from collections.abc import Generator, Sequence
from typing import Any

from ....contract.document import JSON, Operation
from ....contract.pointers import below
from ....contract.source import fixture
from ....core.record import Body
from ..catalogue import body_of, pointer_of
from ..probes import PAUSE, QUIET, Asked, Builder, Journey, Probe, Seen, placeholder
from ..variants import BOUND, Variant, applied
from .listing import listed

_STRANGE, _STRANGE_OF_FEW = 5, 2
"""The most records that stay behind because a creation accepts what it should refuse."""
_KEY = "Idempotency-Key"
_FOREIGN: Body = fixture("verify.yaml")["foreign"]
"""Values that no record has, by format or type."""


def accepts(builder: Builder, operation: Operation) -> Journey:
    """The parameters and the body of an operation, one limit at a time."""
    if operation.method == "GET":
        yield builder.probe(operation, "accepts", "a plain request")
        yield from listed(builder, operation)
    if operation.takes_key:
        yield from repeats(builder, operation)
    elif builder.smallest(operation):
        yield builder.write(operation, builder.smallest(operation), "the required members")
    if operation.body is None:
        return
    large = yield from _members(builder, operation)
    if builder.variants.accepts(operation.body, builder.body(operation)):
        yield from _limits(builder, operation, large)


def _members(builder: Builder, operation: Operation) -> Generator[Asked, Seen, Body]:
    """Write each member alone, and all together, always to another value.

    Returns the objects and lists that a changed record has.
    """
    made, changed = builder.catalogue.made_by(operation), builder.changed_by(operation)
    properties, variants, schema = builder.properties(operation), builder.variants, operation.body
    if changed is None and builder.is_lasting:  # its update writes each alone
        return {}
    group, shown, stored, full = "accepts", operation, Body(), Body()
    accepted: list[str] = []  # by the backend too
    if changed is not None:
        group, shown = "persists", changed.create
    is_dated = changed is None

    def another(name: str) -> Any:
        old, role = stored.get(name), builder.named_by(name)
        if not role:
            usual = builder.body(operation).get(name)
            return variants.another(properties[name], name, old or usual)
        if name.endswith("s"):
            return [] if old else [placeholder(role)]
        # such as the project of a webhook
        return placeholder(role) if old is None else None

    for name in properties:
        if changed is not None:  # what is left out must stay
            yield from builder.ready(changed, **builder.body(changed.create))
            stored = builder.present[changed.role]
        smallest, value = builder.smallest(operation), another(name)
        few = smallest | {name: value}
        if name in smallest or value is None or not variants.accepts(schema, few):
            continue
        where = below(body_of(operation), "properties", name)
        if not is_dated:
            yield PAUSE
        seen = yield builder.write(operation, few, f"{name} alone", where, group=group)
        is_dated |= seen.is_alike
        next_one = another(name)
        more = full | {name: value if next_one is None else next_one}
        if seen.twin.is_success and variants.accepts(schema, smallest | more):
            full = more
            accepted += [name] if seen.target.is_success else []
    makes, every = "" if made is None else made.role, builder.smallest(operation) | full
    yield builder.write(operation, every, "all members", group=group, makes=makes)
    # rules bind some members together, such as a document and its type
    for example in builder.examples(shown)[1:]:
        known = {name: value for name, value in example.items() if name in properties}
        yield builder.write(operation, known, "an example of the contract", group=group)
    large = {name: full[name] for name in accepted if isinstance(full[name], dict | list)}
    return {} if changed is None else large


def repeats(builder: Builder, operation: Operation) -> Journey:
    """A body with an Idempotency-Key, then the same request again, and another body with the same
    key.
    """
    names = [each.name for each in operation.parameters]
    number, key = names.index(_KEY), builder.variants.text(20)
    made = builder.catalogue.made_by(operation)
    pointer = pointer_of(operation, "parameters", number)

    def probe(group: str, learns: str, body: Any, key: str, **more: Any) -> Probe:
        headers = {_KEY: key}
        return builder.probe(operation, group, learns, pointer, body=body, headers=headers, **more)

    makes = "" if made is None else f"{made.role} more"
    longest = operation.parameters[number].schema["maxLength"]
    refused, other = builder.body(operation), builder.body(operation)
    yield probe("rejects", f"{_KEY}: beyond the maxLength", refused, "k" * (longest + 1))
    body = None if other is None else builder.smallest(operation)
    seen = yield probe("persists", f"with an {_KEY}", body, key, makes=makes)
    if not seen.is_alike:
        return
    for learns, sent in (
        ("the same request with the same", body),
        ("another body with the same", other),
    ):
        seen = yield probe("persists", f"{learns} {_KEY}", sent, key, suspect="idempotency")
        if seen.has_departed:  # what the backend has is no longer what the twin has
            if not builder.is_lasting:
                builder.present.clear()
            break


def _limits(builder: Builder, operation: Operation, large: Body) -> Journey:
    """The values beyond the limits of a body; then those at them, as many in one request as the
    backend accepts together, and bodies that are no JSON object. They have `large` members too.
    """
    schema, body = operation.body or {}, large | builder.body(operation)
    variants = [*builder.variants.of_body(schema, body_of(operation), body)]
    # Each document makes a customer that stays behind.
    accepted = [each for each in variants if each.is_accepted and each.place[-1] != "document"]
    moved, role = builder.resource_of(operation), ""
    is_create = moved is not None and operation in moved.creates
    if is_create and builder.is_lasting:  # its update tries what needs a record of its own
        accepted = [each for each in accepted if each.place[-1] not in BOUND]
    if moved is not None and moved.lifecycle is not None and not is_create:
        role = moved.role  # one in its last state takes no other change
    builder.present.pop(role, None)
    refused, strange = [each for each in variants if not each.is_accepted], 0
    for variant in sorted(refused, key=lambda each: each.suspect != "incomplete"):
        asked = {"group": "rejects", "suspect": variant.suspect}
        sent = applied(large | builder.body(operation), [variant])
        seen = yield builder.write(operation, sent, variant.tries, variant.pointer, **asked)
        strange += not seen.is_alike
        is_kept = is_create and moved is not None and moved.delete is None
        if is_kept and strange == (_STRANGE_OF_FEW if builder.is_lasting else _STRANGE):
            break
    yield from _answered(builder, operation, large)
    for group in builder.variants.groups(accepted):
        yield from _together(builder, operation, large, group, role)
    builder.present.pop(role, None)
    content = pointer_of(operation, "requestBody", "content")
    for media, raw, tries in (
        ("text/plain", b"verify", "a body that is not JSON"),
        (JSON, b'{"name": ', "incomplete JSON"),
        (JSON, b"[]", "a list in place of an object"),
    ):
        yield builder.probe(
            operation, "rejects", tries, content, body=raw, headers={"Content-Type": media}
        )


def _answered(builder: Builder, operation: Operation, large: Body) -> Journey:
    """Members that only answers have: an update may refuse or ignore them."""
    changed = builder.changed_by(operation)
    if changed is None:
        return
    for name, node in builder.document.schema(changed.schema)["properties"].items():
        value = _FOREIGN.get(node.get("format", node.get("type")))
        if value is None or name in builder.properties(operation):
            continue
        yield builder.write(
            operation,
            large | builder.body(operation) | {name: value},
            f"{name}, which only answers have",
            f"#/components/schemas/{changed.schema}/properties/{name}",
            group=QUIET,
            suspect="read-only",
        )


def _together(
    builder: Builder, operation: Operation, large: Body, group: Sequence[Variant], role: str
) -> Journey:
    """Send values together; if they are refused, each half of them, and each alone to another
    record of a role.
    """
    body, half = applied(large | builder.body(operation), group), len(group) // 2
    if not half:
        builder.present.pop(role, None)
        yield builder.write(operation, body, group[0].tries, group[0].pointer)
        return
    learns = f"{len(group)} members with other values"
    seen = yield builder.write(operation, body, learns, group=QUIET)
    if not seen.both_accept:
        yield from _together(builder, operation, large, group[:half], role)
        yield from _together(builder, operation, large, group[half:], role)
