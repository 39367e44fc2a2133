"""The record whose state is behind a refusal: what it is now, and what the request needs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...contract.lifecycles import Lifecycle
from ...core.record import Body, Row
from ...core.text import nearest
from .attempt import TABLES, Attempt

_NAMED = 4  # records that are named
_LONGEST_ID = 200  # characters of an id


class Needed(NamedTuple):
    """A record, the field that is behind a refusal, and the values with which the request
    is accepted.
    """

    resource: str
    row: Row
    field: str
    values: Sequence[str]
    lifecycle: Lifecycle | None

    @property
    def is_now(self) -> Any:
        return self.row.public[self.field]

    def may_become(self, state: str) -> bool:
        """Whether the record can go to a state."""
        return self.lifecycle is not None and self.lifecycle.find(self.is_now, state) is not None

    @property
    def moves(self) -> list[str]:
        """The states that the record can go to, each with the operations that do it."""
        found = []
        if self.lifecycle is not None and self.lifecycle.field == self.field:
            for move in self.lifecycle.exits(self.is_now):
                if move.to != self.is_now:
                    found.append(f"{move.to} ({' or '.join(move.by)})")
        return found


def state_behind(s: Attempt, code: str) -> Body | None:
    """The state behind a refusal; None where no record's state is behind it."""
    if code == "method_not_allowed":
        methods = sorted(s.operations)
        moves = [f"{method} ({s.operations[method].id})" for method in methods]
        path, method = s.request["path"], s.request["method"]
        return _shown("Operation", path, "method", method, needed=methods, moves=moves)
    if code in ("not_found", "merchant_not_found"):
        return _similar_records(s)
    found = needed(s, code)
    if found is None:
        return None
    return _shown(
        found.resource,
        found.row.id,
        found.field,
        found.is_now,
        needed=found.values,
        moves=found.moves,
    )


def needed(s: Attempt, code: str) -> Needed | None:
    """What a rule asks of a record; None where it asks nothing, or there is no such record."""
    if code == "invalid_state_transition":
        return _before_the_move(s)
    rule = s.rules.get(code, {}).get("of")
    row = None if rule is None else _record_of(s, rule["resource"])
    if row is None:
        return None
    lifecycle, values = s.copy.rules.lifecycles.get(rule["resource"]), rule["needed"]
    if isinstance(values, str):  # of a set of states
        values = lifecycle.sets[values] if lifecycle else ()
    return Needed(rule["resource"], row, rule["field"], values, lifecycle)


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


def _before_the_move(s: Attempt) -> Needed | None:
    """The record of the path, and the states from which it goes to the one that the request names
    or leads to.
    """
    lifecycle, wanted = s.copy.rules.lifecycles.get(s.resource or ""), s.members.get("status")
    if lifecycle is None or s.target is None:
        return None
    values = []
    for move in lifecycle.moves:
        if s.operation.id in move.by and wanted in (None, move.to):
            values.append(move.from_)
    resource = lifecycle.resource
    return Needed(resource, s.target, lifecycle.field, values or [str(wanted)], lifecycle)


def _similar_records(s: Attempt) -> Body | None:
    """The record that the path nearly names, else the newest ones."""
    table, resource, field = s.table, s.resource, "id"
    if "publicKey" in s.values:
        table, resource, field = "api_keys", "ApiKey", "public_key"
    if table is None or resource is None:
        return None
    ident = next(iter(s.values.values()))
    rows = [row for row in s.newest(table) if field == "id" or row.public["is_active"]]
    known = [row.public[field] for row in rows]
    similar = nearest(ident, known)
    values = [similar] if similar else known[:_NAMED]
    values = values or ["a record of the caller, who has none"]
    return _shown(resource, ident[:_LONGEST_ID], field, None, needed=values)


def _shown(
    resource: str,
    ident: str,
    field: str,
    is_: object,
    *,
    needed: Sequence[str],
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
