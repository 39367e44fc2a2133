"""The record whose state is behind a refusal: what it is now, and what the request needs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...contract.lifecycles import Lifecycle
from ...core.record import Body, Row
from ...core.text import nearest
from .attempt import TABLES, Attempt

_NAMED = 4  # records that are named
_LONGEST_ID = 200  # characters of an id


class State(NamedTuple):
    """A record, the field that is behind a refusal, what it is now, and the values with which the
    request is accepted. `moves` are the states that the record can go to, each with the operations
    that do it.
    """

    resource: str
    id: str
    field: str
    is_now: Any
    needed: Sequence[str]
    moves: Sequence[tuple[str, str]] = ()


def state_behind(s: Attempt, code: str) -> Body | None:
    """The state behind a refusal, as it is shown; None where no record's state is behind it."""
    if code == "method_not_allowed":
        moves = sorted((method, operation.id) for method, operation in s.operations.items())
        found: State | None = State(
            "Operation",
            s.request["path"],
            "method",
            s.request["method"],
            [method for method, _ in moves],
            moves,
        )
    elif code in ("not_found", "merchant_not_found"):
        found = _similar_records(s)
    else:
        found = needed(s, code)
    if found is None:
        return None
    state = found._asdict()
    state["is"] = state.pop("is_now")
    return state | {"moves": [f"{to} ({operations})" for to, operations in found.moves]}


def needed(s: Attempt, code: str) -> State | None:
    """What a rule asks of a record; None where it asks nothing, or there is no such record."""
    if code == "invalid_state_transition":
        return _before_the_move(s)
    rule = s.mender.rules.get(code, {}).get("of")
    row = None if rule is None else _record_of(s, rule["resource"])
    if row is None:
        return None
    lifecycle, values = s.copy.rules.lifecycles.get(rule["resource"]), rule["needed"]
    if isinstance(values, str):  # of a set of states
        values = lifecycle.sets[values] if lifecycle else ()
    return _state_of(rule["resource"], row, rule["field"], values, lifecycle)


def _state_of(
    resource: str, row: Row, field: str, values: Sequence[str], lifecycle: Lifecycle | None
) -> State:
    now, moves = row.public[field], []
    if lifecycle is not None and lifecycle.field == field:
        for move in lifecycle.exits(now):
            if move.to != now:
                moves.append((move.to, " or ".join(move.by)))
    return State(resource, row.id, field, now, values, moves)


def _record_of(s: Attempt, resource: str) -> Row | None:
    """The record that a request is about: of the path, of the record in the path, or
    of the body.
    """
    name = f"{resource.lower()}Id"
    if name not in TABLES:
        return s.target if s.resource == resource else None
    above = s.target.public if s.target is not None else {}
    ident = s.values.get(name) or above.get(name) or s.members.get(name)
    return s.store.tables[TABLES[name]].open(str(ident).lower())


def _before_the_move(s: Attempt) -> State | None:
    """The record of the path, and the states from which it goes to the one that the request names
    or leads to.
    """
    lifecycle, wanted = s.copy.rules.lifecycles.get(s.resource or ""), s.members.get("status")
    if lifecycle is None or s.target is None:
        return None
    values = [
        move.from_
        for move in lifecycle.moves
        if s.operation.id in move.by and wanted in (None, move.to)
    ]
    return _state_of(
        lifecycle.resource, s.target, lifecycle.field, values or [str(wanted)], lifecycle
    )


def _similar_records(s: Attempt) -> State | None:
    """The record that the path nearly names, else the newest ones."""
    table, resource = s.table, s.resource
    if table is None or resource is None:
        return None
    field = "public_key" if "publicKey" in s.values else "id"
    ident = next(iter(s.values.values()))
    rows = [row for row in s.newest(table) if field == "id" or row.public["is_active"]]
    known = [row.public[field] for row in rows]
    similar = nearest(ident, known)
    values = [similar] if similar else known[:_NAMED]
    values = values or ["a record of the caller, who has none"]
    return State(resource, ident[:_LONGEST_ID], field, None, values)
