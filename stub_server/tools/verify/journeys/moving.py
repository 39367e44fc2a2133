"""Moves are as the lifecycles of the contract allow them."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from ....contract.document import Operation
from ..catalogue import Resource, pointer_of
from ..probes import Departed, Seen
from ..walking import Journey, Walk

_Way = tuple[Operation | None, Any]
"""A request by which a record may move: the operation, if there is one, and its body; None for the
contract's example.
"""


def transitions(walk: Walk, resource: Resource) -> Iterator[Journey]:
    """What is allowed to a record in each of its states, and in those of the records to which it
    belongs: a journey each, since one that departs tells nothing of others.
    """
    for state in walk.options(resource.update, resource.field):
        for way in _ways(walk, resource):
            yield partial(_while, walk, resource, resource, state, [way])
    writes = [(each, None) for each in (*resource.creates, resource.update, resource.delete)]
    for holder in walk.needs(resource.create):
        changes = [(holder.update, None), (holder.delete, None)]
        yield partial(_while, walk, resource, holder, None, changes)
        for state in walk.options(holder.update, holder.field):
            yield partial(_while, walk, resource, holder, state, writes)


async def _while(
    walk: Walk, record: Resource, holder: Resource, state: Any, ways: Iterable[_Way]
) -> None:
    """What is allowed while a holder of the record, or it itself, is in a state."""
    is_own = holder == record
    state_of = {holder.field: state}
    begins = is_own and state in walk.options(record.create, holder.field)
    for needed in () if is_own else walk.needs(record.create):  # later its holder may allow none
        await walk.ready(needed)
    # with every member: a move may lose some
    full = walk.body(record.create) | walk.plain(record.create)
    await walk.make(record, **full | (state_of if begins else {}))
    if holder.update is not None and state is not None and not begins:
        seen = await _move(walk, holder.update, f"to {state}", state_of)
        if not seen.both_accept:
            return
    when = f"that has {record.role}"
    if state is not None:
        when = f"from {state}" if is_own else f"while {holder.role} is {state}"
    for operation, body in ways:
        if operation is None:
            continue
        sent = "".join(f" {name}={value}" for name, value in (body or {}).items())
        await _move(walk, operation, f"{operation.id}{sent} {when}", body)
    if not is_own:  # in that state the holder is of no use to the next journey
        raise Departed


async def _move(walk: Walk, operation: Operation, learns: str, body: Any) -> Seen:
    return await walk.write(
        operation,
        walk.body(operation) if body is None else body,
        learns,
        pointer_of(operation),
        group="transitions",
        suspect="lifecycle",
    )


def _ways(walk: Walk, resource: Resource) -> Iterator[_Way]:
    """The requests by which a record may move."""
    for operation in walk.about(resource):
        if not resource.moves_by(operation):
            continue
        if resource.field not in (walk.body(operation) or ()):
            yield operation, None  # also a change of other members: a state may allow none
        for option in walk.options(operation, resource.field):
            yield operation, {resource.field: option}
