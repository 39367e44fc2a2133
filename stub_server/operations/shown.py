"""How most operations show the record that they have made or changed."""

from ..core.record import Row
from ..server.reply import Reply, enveloped
from ..server.work import Work


def shown(work: Work, row: Row, message: str) -> Reply:
    """`{error, message, <member>: record}`, the member called as one of its table; a project is in
    `data`.
    """
    return enveloped(
        message,
        row.table[:-1],
        work.store.shown(row.table, row.record),
        in_data=row.table == "projects",
    )
