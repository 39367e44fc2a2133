"""Orders that end without a payment."""

from ..core.clock import iso
from ..core.record import Row
from ..core.slices import Sliced
from ..domain import orders, payments
from .draft import Draft
from .tables.store import Store


def payable_late(store: Store, index: str, ident: str, now: int) -> Sliced[Row | None]:
    """A boleto of a plan or a project (`index`) that has expired and can still be paid late. Others
    are served meanwhile; orders that expire then, perhaps in a copy of the table, are looked at
    too.
    """
    seen = set[int]()
    while new := set(store.orders.bucket(f"{index}+status", (ident, "expired"))) - seen:
        for key in sorted(new, reverse=True):
            record = store.orders.rows.get(key)
            if record is None or b'"boleto"' not in record.public:
                continue  # others are not worth parsing: there are many
            order = store.orders.parse(record)
            if payments.can_be_late(order, now):
                return order
            yield
        seen |= new
    return None


def fail(draft: Draft, row: Row, code: str) -> Row:
    """The payment is refused. Raises Conflict."""
    return _close(draft, row, "failed", orders.failure(code))


def expire(draft: Draft, row: Row) -> Row:
    """The order's time is over, also before it would have expired. Raises Conflict."""
    return _close(draft, row, "expired", {"success": "false", "expires_at": iso(draft.now)})


def cancel(draft: Draft, row: Row) -> Row:
    """The order is canceled. Raises Conflict."""
    return _close(draft, row, "canceled", {"success": "false"})


def _close(draft: Draft, row: Row, status: str, transaction: dict[str, str]) -> Row:
    if row.status == status:
        return row
    return draft.move(orders.closed(row, status, draft.now, {"status": status} | transaction))
