"""Orders that end without a payment, and the move of an order to another state."""

from ..contract.lifecycles import Move
from ..core.clock import iso
from ..core.record import Body, Row
from ..core.slices import Sliced
from ..domain import orders, payments
from ..domain.lifecycle import move
from .draft import Draft
from .tables.store import Store

IN_EVENTS = ("projectId", "planId", "customerId", "subscriptionId", "metadata")
"""Hidden members of an order that its events have."""


def is_payable(draft: Draft, row: Row) -> bool:
    """Whether an order can be paid."""
    return row.status in draft.states("Order", "payable")


def payable_late(store: Store, index: str, ident: str, now: int) -> Sliced[Body | None]:
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
            public = store.orders.parse(record).public
            if payments.can_be_late(public, now):
                return public
            yield
        seen |= new
    return None


def fail(draft: Draft, row: Row, code: str) -> Row:
    """The payment is refused. Raises Conflict."""
    return _close(draft, row, "failed", orders.failure(code))


def expire(draft: Draft, row: Row) -> Row:
    """The order's time is over. Raises Conflict."""
    return _close(draft, row, "expired", {"status": "expired", "success": "false"})


def cancel(draft: Draft, row: Row) -> Row:
    """The order is canceled. Raises Conflict."""
    return _close(draft, row, "canceled", {"status": "canceled", "success": "false"})


def _close(draft: Draft, row: Row, status: str, transaction: dict[str, str]) -> Row:
    moved = move(draft.lifecycle("Order"), row.status, status)
    if moved is None:
        return row
    public = orders.closed(row.public, status, iso(draft.now), transaction)
    if status == "expired":
        # Expired by hand: its time ends now, so that expires_at and updatedAt agree.
        public["last_transaction"] = public["last_transaction"] | {
            "expires_at": public["updatedAt"]
        }
    return change_order(draft, row, moved, public)


def change_order(
    draft: Draft, row: Row, moved: Move | None, public: Body, hidden: Body | None = None
) -> Row:
    """An order after a move, with its events."""
    order = draft.update(row, public, hidden)
    draft.emit_move(order, moved, *IN_EVENTS)
    return order
