"""What an operation accepts, stores and refuses: each member and parameter, one limit at a time."""

from asyncio import sleep
from collections.abc import Sequence
from typing import Any

from ....contract.document import JSON, Operation
from ....contract.source import fixture
from ....core.record import Body
from ..catalogue import body_of, member_of, pointer_of
from ..probes import QUIET, Seen, placeholder
from ..variants import BOUND, Variant, applied
from ..walking import Walk
from .listing import listed

PAUSE = 2.0  # seconds: a change is dated then later than what it changes
_STRANGE = 5
_STRANGE_OF_FEW = 2
"""The most records that stay behind because a creation accepts what it should refuse."""
_KEY = "Idempotency-Key"
_FOREIGN: Body = fixture("verify.yaml")["foreign"]
"""Values that no record has, by format or type."""
_BROKEN = (
    ("text/plain", b"verify", "a body that is not JSON"),
    (JSON, b'{"name": ', "incomplete JSON"),
    (JSON, b"[]", "a list in place of an object"),
)


async def accepts(walk: Walk, operation: Operation) -> None:
    """The parameters and the body of an operation, one limit at a time."""
    if operation.method == "GET":
        await walk.ask(operation, "accepts", "a plain request")
        await listed(walk, operation)
    if operation.takes_key:
        await _repeated(walk, operation)
    elif walk.smallest(operation):
        await walk.write(operation, walk.smallest(operation), "the required members")
    if operation.body is None:
        return
    if walk.changed_by(operation) or not walk.is_lasting:  # else its update writes each alone
        await _members(walk, operation)
    if walk.variants.accepts(operation.body, walk.body(operation)):
        await _limits(walk, operation)


async def _members(walk: Walk, operation: Operation) -> None:
    """Write each member alone, and all together, always to another value."""
    made = walk.catalogue.made_by(operation)
    changed = walk.changed_by(operation)
    group = "persists" if changed else "accepts"
    full = Body()
    if await _stored(walk, operation):
        await sleep(PAUSE)
    for name in walk.properties(operation):
        stored = await _stored(walk, operation)  # what is left out must stay
        smallest = walk.smallest(operation)
        value = _another(walk, operation, name, stored)
        few = smallest | {name: value}
        if name in smallest or value is None or not walk.variants.accepts(operation.body, few):
            continue
        where = member_of(operation, name)
        seen = await walk.write(operation, few, f"{name} alone", where, group=group)
        more = full | {name: _another(walk, operation, name, stored)}
        if seen.twin.is_success and walk.variants.accepts(operation.body, smallest | more):
            full = more
    every = walk.smallest(operation) | full
    makes = made.role if made else ""
    await walk.write(operation, every, "all members", group=group, makes=makes)
    # rules bind some members together, such as a document and its type
    for example in walk.examples(changed.create if changed else operation)[1:]:
        body = walk.known(operation, example)
        await walk.write(operation, body, "an example of the contract", group=group)


async def _stored(walk: Walk, operation: Operation) -> Body:
    """What was written to a record with every member that an operation updates; else nothing."""
    changed = walk.changed_by(operation)
    if changed is None:
        return {}
    await walk.ready(changed, **walk.body(changed.create))
    return walk.known(operation, walk.present[changed.role])


def _another(walk: Walk, operation: Operation, name: str, stored: Body) -> Any:
    """A value for a member that differs from what is stored; None if there is none."""
    old = stored.get(name)
    role = walk.named_by(name)
    if not role:
        usual = walk.body(operation).get(name)
        return walk.variants.another(walk.properties(operation)[name], name, old or usual)
    if name.endswith("s"):
        return [] if old else [placeholder(role)]
    # such as the project of a webhook
    return placeholder(role) if old is None else None


async def _repeated(walk: Walk, operation: Operation) -> None:
    """A body with an Idempotency-Key, then the same request again, and another body with the same
    key.
    """
    number = [each.name for each in operation.parameters].index(_KEY)
    pointer = pointer_of(operation, "parameters", number)
    key = walk.variants.text(20)
    other = walk.body(operation)

    async def sent(learns: str, body: Any, key: str, **more: Any) -> Seen:
        more = {"group": "persists", "headers": {_KEY: key}, **more}
        return await walk.write(operation, body, learns, pointer, **more)

    long = "k" * (operation.parameters[number].schema["maxLength"] + 1)
    await sent(f"{_KEY}: beyond the maxLength", walk.body(operation), long, group="rejects")
    body = None if other is None else walk.smallest(operation)
    seen = await sent(f"with an {_KEY}", body, key)
    if not seen.is_alike:
        return
    again = {"the same request with the same": body, "another body with the same": other}
    for learns, body in again.items():
        seen = await sent(f"{learns} {_KEY}", body, key, suspect="idempotency", makes="")
        if seen.has_departed:  # what the backend has is no longer what the twin has
            if not walk.is_lasting:
                walk.present.clear()
            break


async def _limits(walk: Walk, operation: Operation) -> None:
    """The values beyond the limits of a body; then those at them, as many in one request as the
    backend accepts together, and bodies that are no JSON object.
    """
    kind = walk.resource_of(operation)
    made = walk.catalogue.made_by(operation)
    stored = await _stored(walk, operation)
    # an update may change an object in part
    large = {name: value for name, value in stored.items() if isinstance(value, dict | list)}
    variants = walk.variants.of_body(
        operation.body or {}, body_of(operation), large | walk.body(operation)
    )
    accepted: list[Variant] = []
    refused: list[Variant] = []
    for each in variants:
        (accepted if each.is_accepted else refused).append(each)
    role = ""
    if kind and kind.lifecycle and not made:
        role = kind.role  # one in its last state takes no other change
    walk.present.pop(role, None)
    strange = 0
    for each in sorted(refused, key=lambda each: each.suspect != "incomplete"):
        seen = await walk.write(
            operation,
            applied(large | walk.body(operation), [each]),
            each.tries,
            each.pointer,
            group="rejects",
            suspect=each.suspect,
        )
        strange += not seen.is_alike
        is_kept = made is not None and made.delete is None
        if is_kept and strange == (_STRANGE_OF_FEW if walk.is_lasting else _STRANGE):
            break
    await _answered(walk, operation, large)
    # Each document makes a customer that stays behind.
    left_out = ("document", *(BOUND if made and walk.is_lasting else ()))
    for group in walk.variants.groups(it for it in accepted if it.place[-1] not in left_out):
        await _together(walk, operation, large, group, role)
    walk.present.pop(role, None)
    content = pointer_of(operation, "requestBody", "content")
    for media, raw, tries in _BROKEN:
        headers = {"Content-Type": media}
        await walk.ask(operation, "rejects", tries, content, body=raw, headers=headers)


async def _answered(walk: Walk, operation: Operation, large: Body) -> None:
    """Members that only answers have: an update may refuse or ignore them."""
    changed = walk.changed_by(operation)
    if changed is None:
        return
    for name, node in walk.document.schema(changed.schema)["properties"].items():
        value = _FOREIGN.get(node.get("format", node.get("type")))
        if value is None or name in walk.properties(operation):
            continue
        await walk.write(
            operation,
            large | walk.body(operation) | {name: value},
            f"{name}, which only answers have",
            f"#/components/schemas/{changed.schema}/properties/{name}",
            group=QUIET,
            suspect="read-only",
        )


async def _together(
    walk: Walk, operation: Operation, large: Body, group: Sequence[Variant], role: str
) -> None:
    """Send values together; if they are refused, each half of them, and each alone to another
    record of a role.
    """
    body = applied(large | walk.body(operation), group)
    half = len(group) // 2
    if not half:
        walk.present.pop(role, None)
        await walk.write(operation, body, group[0].tries, group[0].pointer)
        return
    learns = f"{len(group)} members with other values"
    seen = await walk.write(operation, body, learns, group=QUIET)
    if not seen.both_accept:
        await _together(walk, operation, large, group[:half], role)
        await _together(walk, operation, large, group[half:], role)
