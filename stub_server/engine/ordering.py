"""Orders from their creation to their end, but for payments, which `billing.py` has."""

from typing import NamedTuple

from ..contract.lifecycles import Move
from ..core.clock import SECOND, iso
from ..core.record import Body, Record, Row
from ..domain import orders, payments
from ..domain.lifecycle import move
from .draft import Draft

AUTOPAID = ("pix", "boleto")  # what `autopay` pays: cards are charged, not paid


class NewOrder(NamedTuple):
    """What is ordered, by whom, and how it is paid. `body` is a request, with ids as in the
    records.

    It can be paid for `life` ms, and a boleto is `due` (ms) at the end of that, unless told
    otherwise. An order that a scenario names has the id `ident`; one that fails at once has the
    failure code `refused`. With `no_magic`, magic values have no effect. With `copy_only`, the keys
    of its project see what the order says of its customer, and not the customer. The order of a
    further period names its subscription.
    """

    body: Body
    customer: Body
    customer_id: str
    method: str
    copy_only: bool = False
    ident: str | None = None
    refused: str | None = None
    no_magic: bool = False
    life: int | None = None
    due: int | None = None
    subscription_id: str | None = None


def place(draft: Draft, new: NewOrder) -> Record:
    """A new order, with the timers that end or pay it."""
    rules, store, now, method = draft.sandbox.rules, draft.store, draft.now, new.method
    behaviour = _behaviour_of(draft, new.customer_id)
    magic = orders.magic_of("" if new.no_magic else new.customer["email"], behaviour)
    outcome = orders.MAGIC.get(magic or "", orders.NOTHING)
    refused = orders.DEFAULT_FAILURE[method] if outcome.fails else new.refused
    life = _life(new, outcome, now)
    names = _names_of(draft, new)
    ident = names[0]
    seller = (store.merchant.name, store.merchant.city, rules.base_url)
    due = now + life if new.due is None else new.due
    payment = orders.NewPayment(method, seller, now, now + life, due, refused)
    public, hidden = orders.new_order(names, new.body, new.customer, payment)
    hidden |= {"customerId": new.customer_id, "copy_only": new.copy_only}
    if new.subscription_id is not None:
        hidden |= {"subscriptionId": new.subscription_id, "renewal": True}
    if behaviour is not None:
        hidden["behaviour"] = behaviour
    record = draft.create(store.orders, ident, public, hidden)
    emit_order(draft, record, hidden, rules.lifecycles["Order"].beginnings.get(public["status"]))
    if public["status"] == "failed":
        return record
    draft.at(now + life, "order.expire", ident)
    for job, delay in outcome.jobs:
        draft.at(now + delay, job, ident)
    if magic is None and method in AUTOPAID:
        _pay_later(draft, ident)
    return record


def _names_of(draft: Draft, new: NewOrder) -> orders.Names:
    """Its id, its code and the id of its transaction."""
    code = draft.code_for(draft.store.orders)
    ident = new.ident or draft.ids.uuid()
    return ident, code, draft.ids.uuid()


def _life(new: NewOrder, outcome: orders.MagicOutcome, now: int) -> int:
    """How long a new order can be paid, in ms."""
    if outcome.life is not None:
        return outcome.life
    if new.life is not None:
        return new.life
    return orders.life(new.method, now)


def _pay_later(draft: Draft, ident: str) -> None:
    """Set the timer of `autopay`, if that is set."""
    autopay = draft.sandbox.settings.autopay
    if autopay is not None:
        draft.at(draft.now + autopay * SECOND, "order.pay", ident)


def _behaviour_of(draft: Draft, customer_id: str) -> str | None:
    """How the customer was set to pay this order."""
    table = draft.store.customers
    record = table.find(customer_id)  # one that the draft creates has none
    if record is None or b"behaviour" not in record.hidden:
        return None
    row = draft.open(table, customer_id)
    if row is None or "behaviour" not in row.hidden:
        return None
    hidden = orders.used_up(row.hidden)
    if hidden is not row.hidden:
        draft.update(table, row, row.public, hidden)
    payment: str = row.hidden["behaviour"]["payment"]
    return payment


def is_payable(draft: Draft, row: Row) -> bool:
    """Whether an order can be paid."""
    return row.public["status"] in draft.states("Order", "payable")


def payable_late(draft: Draft, index: str, ident: str) -> Body | None:
    """A boleto of a plan or a project (`index`) that has expired and can still be paid late."""
    table = draft.store.orders
    for key in reversed(table.bucket(f"{index}+status", (ident, "expired"))):
        if b'"boleto"' in table.rows[key].public:  # others are not worth parsing: there are many
            public = table.parse(table.rows[key]).public
            if payments.can_be_late(public, draft.now):
                return public
    return None


def fail(draft: Draft, row: Row, code: str) -> Record:
    """The payment is refused. Raises Conflict."""
    return _close(draft, row, "failed", orders.failure(code))


def expire(draft: Draft, row: Row) -> Record:
    """The order's time is over. Raises Conflict."""
    return _close(draft, row, "expired", {"status": "expired", "success": "false"})


def cancel(draft: Draft, row: Row) -> Record:
    """The order is canceled. Raises Conflict."""
    return _close(draft, row, "canceled", {"status": "canceled", "success": "false"})


def _close(draft: Draft, row: Row, status: str, transaction: dict[str, str]) -> Record:
    moved = move(draft.lifecycle("Order"), row.public["status"], status)
    if moved is None:
        return row.record
    public = orders.closed(row.public, status, iso(draft.now), transaction)
    if status == "expired":
        # Expired by hand: its time ends now, so that expires_at and updatedAt agree.
        public["last_transaction"] = public["last_transaction"] | {
            "expires_at": public["updatedAt"]
        }
    return change_order(draft, row, moved, public)


def change_order(
    draft: Draft, row: Row, moved: Move | None, public: Body, hidden: Body | None = None
) -> Record:
    """An order after a move, with its events."""
    record = draft.update(draft.store.orders, row, public, hidden)
    emit_order(draft, record, hidden or row.hidden, moved)
    return record


def emit_order(draft: Draft, record: Record, hidden: Body, moved: Move | None) -> None:
    """The events of an order's move."""
    names = ("projectId", "planId", "customerId", "subscriptionId", "metadata")
    draft.emit_move(draft.store.orders, record, moved, hidden["projectId"], *names)
