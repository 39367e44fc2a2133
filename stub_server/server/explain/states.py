"""The record whose state is behind a refusal: what it is now, and what the request needs."""

from typing import Any, NamedTuple

from ...contract.document import Lifecycle
from ...core.record import Body, Row
from ...core.text import nearest
from .attempt import TABLES, Situation

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
        asked, operations = s.question, s.operations
        moves = [f"{method} ({operation.id})" for method, operation in sorted(operations.items())]
        return _shown("Operation", asked.path, "method", asked.method, sorted(operations), *moves)
    if code in ("not_found", "merchant_not_found"):
        return _similar_records(s)
    found = needed(s, code)
    if found is None:
        return None
    moves = []
    if found.lifecycle is not None and found.lifecycle.field == found.field:
        exits = [move for move in found.lifecycle.exits(found.is_now) if move.to != found.is_now]
        moves = [f"{move.to} ({' or '.join(move.by)})" for move in exits]
    return _shown(found.resource, found.row.id, found.field, found.is_now, found.values, *moves)


def needed(s: Situation, code: str) -> Needed | None:
    """What a rule asks of a record; None where it asks nothing, or there is no such record."""
    if code == "invalid_state_transition":
        return _before_the_move(s)
    rule = s.rules.get(code, {}).get("of")
    row = None if rule is None else _record_of(s, rule["resource"])
    if rule is None or row is None:
        return None
    lifecycle, values = s.copy.rules.lifecycles.get(rule["resource"]), rule["needed"]
    if isinstance(values, str):
        values = [] if lifecycle is None else list(lifecycle.sets[values])
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
    return None if ident is None or table is None else table.open(str(ident).lower())


def _before_the_move(s: Situation) -> Needed | None:
    """The record of the path, and the states from which it goes to the one that the request names
    or leads to.
    """
    table = next((s.table(name) for name in s.values if name in TABLES), None)
    lifecycle = None if table is None else s.copy.rules.lifecycles.get(table.spec.schema)
    if lifecycle is None or s.target is None:
        return None
    own = [move for move in lifecycle.moves if s.operation.id in move.by]
    wanted = s.member("status")
    if not isinstance(wanted, str):
        wanted = next((move.to for move in own), None)
    values = dict.fromkeys(move.from_ for move in own if move.to == wanted and move.from_ != "new")
    return Needed(
        lifecycle.resource, s.target, lifecycle.field, [*values] or [str(wanted)], lifecycle
    )


def _similar_records(s: Situation) -> Body | None:
    """The record that the path nearly names, else the newest ones."""
    name = next(iter(s.values), "")
    table = s.store.api_keys if name == "publicKey" else s.table(name)
    if table is None:
        return None
    field = "public_key" if name == "publicKey" else "id"
    known = [
        row.public[field] for row in s.newest(table) if field == "id" or row.public["is_active"]
    ]
    similar = nearest(s.values[name], known)
    values = [similar] if similar else known[:_NAMED] or ["a record of the caller, who has none"]
    return _shown(table.spec.schema, s.values[name][:_LONGEST_ID], field, None, values)


def _shown(
    resource: str, ident: str, field: str, is_: object, values: list[str], *moves: str
) -> Body:
    return {
        "resource": resource,
        "id": ident,
        "field": field,
        "is": is_,
        "needed": values,
        "moves": list(moves),
    }
