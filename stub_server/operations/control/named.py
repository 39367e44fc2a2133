"""Records as controls take them: by the id, orders and subscriptions by the code or
as `last` too.
"""

from collections.abc import Iterator
from contextlib import suppress

from ...core.problem import NotFound, reference_not_found
from ...core.record import Row
from ...server.work import Work


def open_named(work: Work, table: str, name: str, what: str) -> Row:
    """A record of any merchant of the sandbox, for whom this works from now on. Raises NotFound."""
    for ident in _idents(work, table, name):
        with suppress(NotFound):
            return work.open_of_any(table, ident, what)
    raise work.not_found(what)


def _idents(work: Work, table: str, name: str) -> Iterator[str]:
    """The ids that a name may mean.

    `last` is the record that was made last, unless that was undone: by date it may be another, as
    orders of a persona are older.
    """
    if name == "last":
        for step in reversed(work.sandbox.log):
            for change in reversed(step.changes):
                if change.table == table and change.before is None:
                    yield change.id
        own = work.store.tables[table]
        for key in own.order[-1:]:
            yield own.rows[key].id
        return
    yield name.lower()
    for store in work.sandbox.stores.values():
        codes = store.tables[table].unique.get("code", {})  # an overlay may take the key away
        yield codes.get(name.upper(), "")


def open_referred(work: Work, member: str, ident: str) -> Row:
    """The same of the record to which a member of the body refers, such as `planId`.

    Raises Conflict.
    """
    what = member.removesuffix("Id")
    try:
        return work.open_of_any(f"{what}s", ident.lower(), what)
    except NotFound:
        raise reference_not_found(member, what) from None
