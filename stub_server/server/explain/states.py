"""The record whose state is behind a refusal: what it is now, and what the request needs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...contract.lifecycles import Lifecycle
from ...core.record import Body, Row
from ...core.text import nearest
from .attempt import Situation

_NAMED = 4  # records that are named
_LONGEST_ID = 200  # characters of an id


class Needed(NamedTuple):
    """A record, the field that is behind a refusal, and the values with which the request
    is accepted.
    """

    resource: str
    row: Row
    field: str
    values: list[str]
    lifecycle: Lifecycle | None

    @property
    def is_now(self) -> Any:
        return self.row.public[self.field]


def state_behind(s: Situation, code: str) -> Body | None:
    """The state behind a refusal, with the moves that leave it; None where no record's state is
    behind it.
    """
    if code == "method_not_allowed":
        asked, methods = s.question, sorted(s.operations)
        moves = [f"{method} ({s.operations[method].id})" for method in methods]
        return _shown("Operation", asked.path, "method", asked.method, needed=methods, moves=moves)
    if code in ("not_found", "merchant_not_found"):
        return _similar_records(s)
    found = needed(s, code)
    if found is None:
        return None
    moves = []
    if found.lifecycle is not None and found.lifecycle.field == found.field:
        for move in found.lifecycle.exits(found.is_now):
            if move.to != found.is_now:
                moves.append(f"{move.to} ({' or '.join(move.by)})")
    return _shown(
        found.resource, found.row.id, found.field, found.is_now, needed=found.values, moves=moves
    )


def needed(s: Situation, code: str) -> Needed | None:
    """What a rule asks of a record; None where it asks nothing, or there is no such record."""
    if code == "invalid_state_transition":
        return _before_the_move(s)
    rule = s.rules.get(code, {}).get("of")
    if rule is None:
        return None
    row = _record_of(s, rule["resource"])
    if row is None:
        return None
    lifecycle, values = s.copy.rules.lifecycles.get(rule["resource"]), rule["needed"]
    if isinstance(values, str):  # of a set of states
        values = list(lifecycle.sets[values]) if lifecycle else []
    return Needed(rule["resource"], row, rule["field"], values, lifecycle)


def _record_of(s: Situation, resource: str) -> Row | None:
    """The record that a request is about: of the path, of the record in the path, or
    of the body.
    """
    if resource not in ("Project", "Plan"):
        return s.target
    name = f"{resource.lower()}Id"
    ident = s.values.get(name) or s.member(name)
    if resource == "Project" and s.target is not None:
        ident = s.target.public.get(name, ident)
    table = s.table(name)
    if ident is None or table is None:
        return None
    return table.open(str(ident).lower())


def _before_the_move(s: Situation) -> Needed | None:
    """The record of the path, and the states from which it goes to the one that the request names
    or leads to.
    """
    lifecycle = _lifecycle_of(s)
    if lifecycle is None or s.target is None:
        return None
    own = [move for move in lifecycle.moves if s.operation.id in move.by]
    wanted = s.member("status")
    if own and not isinstance(wanted, str):
        wanted = own[0].to
    values: list[str] = []
    for move in own:
        if move.to == wanted and move.from_ not in ("new", *values):
            values.append(move.from_)
    return Needed(lifecycle.resource, s.target, lifecycle.field, values or [str(wanted)], lifecycle)


def _lifecycle_of(s: Situation) -> Lifecycle | None:
    """The states that the record in the path can be in, if it has states."""
    for name in s.values:
        table = s.table(name)
        if table is not None:
            return s.copy.rules.lifecycles.get(table.spec.schema)
    return None


def _similar_records(s: Situation) -> Body | None:
    """The record that the path nearly names, else the newest ones."""
    name, field = next(iter(s.values), ""), "id"
    table = s.table(name)
    if name == "publicKey":
        table, field = s.store.api_keys, "public_key"
    if table is None:
        return None
    known = []
    for row in s.newest(table):
        if field == "id" or row.public["is_active"]:
            known.append(row.public[field])
    values = known[:_NAMED] or ["a record of the caller, who has none"]
    similar = nearest(s.values[name], known)
    if similar is not None:
        values = [similar]
    return _shown(table.spec.schema, s.values[name][:_LONGEST_ID], field, None, needed=values)


def _shown(
    resource: str,
    ident: str,
    field: str,
    is_: object,
    *,
    needed: list[str],
    moves: Sequence[str] = (),
) -> Body:
    return {
        "resource": resource,
        "id": ident,
        "field": field,
        "is": is_,
        "needed": needed,
        "moves": moves,
    }
