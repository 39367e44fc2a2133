"""Records as controls take them: by the id, orders and subscriptions by the code or
as `last` too.
"""

from ...core.problem import NotFound, reference_not_found
from ...core.record import Row
from ...server.work import Work


def open_named(work: Work, table: str, name: str, what: str) -> Row:
    """A record of any merchant of the sandbox, for whom this works from now on. Raises NotFound."""
    ident = _made_last(work, table) if name == "last" else name.lower()
    for store in work.sandbox.stores.values():
        codes = store.tables[table].unique.get("code", {})  # an overlay may take the key away
        ident = codes.get(name.upper(), ident)
    return work.open_of_any(table, ident, what)


def open_referred(work: Work, member: str, ident: str) -> Row:
    """The same of the record to which a member of the body refers, such as `planId`.

    Raises Conflict.
    """
    what = member.removesuffix("Id")
    try:
        return work.open_of_any(f"{what}s", ident.lower(), what)
    except NotFound:
        raise reference_not_found(member, what) from None


def _made_last(work: Work, table: str) -> str:
    """The id of the record that was made last: by date it may be another, as orders of a persona
    are older.
    """
    for step in reversed(work.sandbox.log):
        for part in step.parts:
            for change in reversed(part.changes):
                is_new = change.table == table and change.before is None
                if is_new and _is_there(work, table, change.id):  # it may have been undone
                    return change.id
    own = work.store.tables[table]
    return own.rows[own.order[-1]].id if own.order else ""


def _is_there(work: Work, table: str, ident: str) -> bool:
    """Whether a merchant of the sandbox has a record."""
    return any(store.tables[table].find(ident) for store in work.sandbox.stores.values())
