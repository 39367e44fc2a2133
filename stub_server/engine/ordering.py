"""New orders. `closing.py` ends them, `billing.py` has their payments."""

from ..core.clock import SECOND
from ..core.record import Row
from ..domain import orders, subscriptions
from ..domain.orders import NewOrder
from .billing import pay
from .draft import Draft

AUTOPAID = ("pix", "boleto")  # what `autopay` pays: cards are charged, not paid


def buy(draft: Draft, new: NewOrder) -> Row:
    """A buyer's order.

    A card pays it in the same step, unless it is refused or by a magic value.
    """
    order = place(draft, new)
    if new.method == subscriptions.CHARGED:
        magic = orders.magic_for(order)
        if magic.is_prompt and draft.is_in(order, "payable"):
            return pay(draft, order)
    return order


def place(draft: Draft, new: NewOrder) -> Row:
    """A new order, with the timers that end or pay it."""
    store = draft.store
    now = draft.now
    behaviour = _behaviour_of(draft, new.customer_id)
    magic = orders.magic_of("" if new.no_magic else new.customer["email"], behaviour)
    if magic.fails:
        new = new._replace(refused=orders.DEFAULT_FAILURE[new.method])
    code = draft.code_for("orders")
    blank = draft.new("orders", new.ident)
    life = new.life if magic.life is None else magic.life
    expires = now + (orders.life(new.method, now) if life is None else life)
    seller = store.merchant.name, store.merchant.city, draft.sandbox.rules.base_url
    transaction = orders.new_transaction(new, draft.ids.uuid(), seller, now, expires)
    order = orders.new_order(blank, new, code, transaction)
    if behaviour is not None:
        order = order.keeping({"behaviour": behaviour})
    order = draft.move(order)
    if new.refused is None:
        draft.at(expires, "order.expire", order.id)
        _set_timers(draft, order.id, new.method, magic)
    return order


def _set_timers(draft: Draft, ident: str, method: str, magic: orders.Magic) -> None:
    """Set the timers that pay a new order, as its magic value or `autopay` says."""
    autopay = draft.sandbox.settings.autopay
    if magic.pays is not None:
        draft.at(draft.now + magic.pays, "order.pay", ident)
    if magic.refunds is not None:
        draft.at(draft.now + magic.refunds, "order.refund", ident)
    if magic.name:
        return
    if autopay is not None and method in AUTOPAID:
        draft.at(draft.now + autopay * SECOND, "order.pay", ident)


def _behaviour_of(draft: Draft, customer_id: str) -> str | None:
    """How the customer was set to pay this order."""
    record = draft.store.customers.find(customer_id)  # one that the draft creates has none
    if record is None or b"behaviour" not in record.hidden:  # most are not even parsed
        return None
    row = draft.get("customers", customer_id)
    if "behaviour" not in row.hidden:
        return None
    used = orders.used_up(row)
    if used.differs:
        draft.put(used)
    payment: str = row["behaviour"]["payment"]
    return payment
