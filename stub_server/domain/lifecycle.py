"""The rules of every resource: moves between states (`x-lifecycle`), unique keys, and ids
of other records.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..contract.lifecycles import Lifecycle, Move
from ..core.problem import Conflict, detail, reference_not_found
from ..core.record import UniqueKey

_CAPITALS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def move(lifecycle: Lifecycle, from_: str, to: str, name: str | None = None) -> Move | None:
    """The move, of that name where several lead there; None if the state is `to` already.

    Raises Conflict for a move that the table does not have.
    """
    if from_ == to and lifecycle.find(from_, to, name) is None:
        return None
    return legal(lifecycle, from_, to, name)


def legal(lifecycle: Lifecycle, from_: str, to: str, name: str | None = None) -> Move:
    """The move, of that name where several lead there.

    Raises Conflict for one that the table does not have, also from a state to itself.
    """
    found = lifecycle.find(from_, to, name)
    if found is None:
        raise refused(lifecycle, from_, to)
    return found


def refused(lifecycle: Lifecycle, from_: str, to: str) -> Conflict:
    """409 with from, to, what is allowed, and how to get there."""
    exits: dict[str, None] = {}
    for exit_ in lifecycle.exits(from_):
        if exit_.to not in (from_, "deleted"):
            exits[f"{exit_.to} ({' or '.join(exit_.by)})"] = None
    message = f"The {noun(lifecycle.resource)} cannot go from {from_} to {to}."
    if exits:
        message += f" From {from_} it goes to {', '.join(exits)}."
    else:
        message += f" {from_} is final."
    route = path(lifecycle, from_, to)
    if len(route) > 2:
        message += f" To reach {to}: {' → '.join(route)}."
    return Conflict(message, details=[detail(lifecycle.field, "not_allowed", f"{from_} → {to}")])


def noun(resource: str) -> str:
    """`WebhookLog` -> `webhook log`."""
    return _CAPITALS.sub(" ", resource).lower()


def either(states: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    if len(states) < 2:
        return "".join(states)
    return f"{', '.join(states[:-1])} or {states[-1]}"


def path(lifecycle: Lifecycle, from_: str, to: str) -> list[str]:
    """The shortest path between two states, both ends included; empty if there is none."""
    ways = deque([[from_]])
    seen = {from_}
    while ways:
        way = ways.popleft()
        if way[-1] == to:
            return way
        for exit_ in lifecycle.exits(way[-1]):
            if exit_.to not in seen:
                seen.add(exit_.to)
                ways.append([*way, exit_.to])
    return []


def duplicate(resource: str, key: UniqueKey, value: Any) -> Conflict:
    """409 for a resource, such as `Plan`, whose value of a unique key another one has."""
    assert key.code is not None  # only keys that requests can choose are refused
    within = "merchant"
    if key.scope is not None and value[-1] is not None:
        within = key.scope.removesuffix("Id")
    message = f"Another {noun(resource)} of this {within} has this {' and '.join(key.members)}."
    return Conflict(
        message,
        code=key.code,
        details=[detail(member, key.code, message) for member in key.members],
    )


def known_ids(
    field: str, what: str, asked: Iterable[str], is_known: Callable[[str], bool]
) -> list[str]:
    """The ids of a list in the body, each once, in their order. Raises `reference_not_found`."""
    found: dict[str, None] = {}
    for index, ident in enumerate(map(str.lower, asked)):
        if not is_known(ident):
            raise reference_not_found(f"{field}[{index}]", what)
        found[ident] = None
    return list(found)
