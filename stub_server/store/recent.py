"""The records that were written last, parsed: for a lived past, which opens again what it has just written."""

from ..kernel.record import Record, Row

MOST = 8_192  # so many records of a table


class Recent:
    """Rows by id. Its dicts are shared by all who open it: nothing may change them in place."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def find(self, record: Record) -> Row | None:
        """A version's row, if it is remembered."""
        row = self._rows.get(record.id)
        return row if row is not None and row.record is record else None

    def keep(self, row: Row) -> None:
        """Remember a row; when there are too many, all others are forgotten."""
        if len(self._rows) >= MOST:
            self._rows.clear()
        self._rows[row.record.id] = row
