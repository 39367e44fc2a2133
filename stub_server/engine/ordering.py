"""New orders. `closing.py` ends them, `billing.py` has their payments."""

from typing import NamedTuple

from ..core.clock import SECOND
from ..core.record import Body, Record
from ..domain import orders, subscriptions
from .billing import pay
from .closing import IN_EVENTS, is_payable
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


def buy(draft: Draft, new: NewOrder) -> Record:
    """A buyer's order.

    A card pays it in the same step, unless it is refused or by a magic value.
    """
    record = place(draft, new)
    if new.method == subscriptions.CHARGED:
        row = draft.get(draft.store.orders, record.id)
        if orders.magic_for(row.public, row.hidden).is_prompt and is_payable(draft, row):
            return pay(draft, row)
    return record


def place(draft: Draft, new: NewOrder) -> Record:
    """A new order, with the timers that end or pay it."""
    store, now = draft.store, draft.now
    behaviour = _behaviour_of(draft, new.customer_id)
    magic = orders.magic_of("" if new.no_magic else new.customer["email"], behaviour)
    code, ident = draft.code_for(store.orders), new.ident or draft.ids.uuid()
    names = ident, code, draft.ids.uuid()
    life = new.life if magic.life is None else magic.life
    expires = now + (orders.life(new.method, now) if life is None else life)
    seller = store.merchant.name, store.merchant.city, draft.sandbox.rules.base_url
    due = expires if new.due is None else new.due
    refused = orders.DEFAULT_FAILURE[new.method] if magic.fails else new.refused
    payment = orders.NewPayment(new.method, seller, now, expires, due, refused)
    public, hidden = orders.new_order(names, new.body, new.customer, payment)
    hidden |= {"customerId": new.customer_id, "copy_only": new.copy_only}
    if new.subscription_id is not None:
        hidden |= {"subscriptionId": new.subscription_id, "renewal": True}
    if behaviour is not None:
        hidden["behaviour"] = behaviour
    record = draft.create(store.orders, ident, public, hidden)
    moved = draft.lifecycle("Order").find("new", public["status"])
    draft.emit_move(store.orders, record, moved, hidden["projectId"], *IN_EVENTS)
    if refused is None:
        _set_timers(draft, ident, payment, magic)
    return record


def _set_timers(draft: Draft, ident: str, payment: orders.NewPayment, magic: orders.Magic) -> None:
    """Set the timers that end a new order and pay it, as its magic value or `autopay` says."""
    draft.at(payment.expires, "order.expire", ident)
    autopay = draft.sandbox.settings.autopay
    if magic.pays is not None:
        draft.at(draft.now + magic.pays, "order.pay", ident)
    if magic.refunds is not None:
        draft.at(draft.now + magic.refunds, "order.refund", ident)
    if magic.name:
        return
    if autopay is not None and payment.method in AUTOPAID:
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
