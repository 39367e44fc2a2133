"""Orders as charges: what the contract says of their states, how they are placed, and how they end unpaid."""

from __future__ import annotations

from collections.abc import Collection
from zlib import crc32

from ..contract.document import Lifecycle, Move
from ..domain import orders
from ..domain.lifecycle import move
from ..domain.payments import Payer
from ..kernel.clock import SECOND, iso
from ..kernel.record import Body, Record, Row
from .draft import Draft

# -- what the contract says of states


def lifecycle(draft: Draft, resource: str) -> Lifecycle:
    """The contract's states and moves of a resource."""
    return draft.sandbox.rules.lifecycles[resource]


def states(draft: Draft, resource: str, name: str) -> Collection[str]:
    """A named set of states, such as the `payable` ones of Order."""
    return lifecycle(draft, resource).sets[name]


def is_payable(draft: Draft, row: Row) -> bool:
    """Whether an order can be paid."""
    return row.public["status"] in states(draft, "Order", "payable")


def is_refundable(draft: Draft, row: Row) -> bool:
    """Whether money of an order can be given back."""
    return row.public["status"] in states(draft, "Order", "refundable")


# -- orders


def place(
    draft: Draft,
    body: Body,
    customer: Body,
    customer_id: str,
    method: str,
    subscription_id: str | None,
    life: int,
    ident: str | None = None,
    *,
    refused: str | None = None,
    is_ordinary: bool = False,
    copy_only: bool = False,
) -> Record:
    """A new order, with the timers that end or pay it. `life` is how long it can be paid, in ms.

    An order that a scenario names has the id `ident`; one that fails at once has the failure code `refused`. To an
    ordinary one a magic value does nothing. By one that is `copy_only` the keys of its project see what it says of its
    customer, and not the customer.
    """
    rules, store, now = draft.sandbox.rules, draft.store, draft.now
    code = draft.code_for(store.orders)
    behaviour = _behaviour_of(draft, customer_id)
    magic = None if is_ordinary else orders.magic_of(customer["email"])
    if behaviour is not None:
        magic = orders.BEHAVIOURS[behaviour]
    outcome = orders.NOTHING if magic is None else orders.MAGIC[magic]
    if outcome.fails:
        refused = orders.DEFAULT_FAILURE[method]
    expires = now + (life if outcome.life is None else outcome.life)
    ident = ident or draft.ids.uuid()
    names = (ident, code, draft.ids.uuid())
    seller = (store.merchant.name, store.merchant.city, rules.base_url)
    public, hidden = orders.new_order(
        names, body, customer, customer_id, method, seller, now, expires, refused, subscription_id
    )
    if behaviour is not None:
        hidden["behaviour"] = behaviour
    if copy_only:
        hidden["copy_only"] = True
    record = draft.create(store.orders, ident, public, hidden)
    tell_order(draft, record, hidden, lifecycle(draft, "Order").find("new", public["status"]))
    if public["status"] == "failed":
        return record
    draft.at(expires, "order.expire", ident)
    for job, delay in outcome.jobs:
        draft.at(now + delay, job, ident)
    autopay = draft.sandbox.settings.autopay
    if magic is None and autopay is not None and method in AUTOPAID:
        draft.at(now + autopay * SECOND, "order.pay", ident)
    return record


def _behaviour_of(draft: Draft, customer_id: str) -> str | None:
    """What the customer was set to do with orders, this one of them."""
    table = draft.store.customers
    record = draft.find(table, customer_id)
    if record is None or b"behaviour" not in record.hidden:
        return None
    row = draft.open(table, customer_id)
    assert row is not None
    hidden = orders.used_up(row.hidden)
    if hidden is not row.hidden:
        draft.update(table, row, row.public, hidden)
    payment: str = row.hidden["behaviour"]["payment"]
    return payment


AUTOPAID = ("pix", "boleto")  # what `autopay` pays: cards are charged, not paid


def payer_of(draft: Draft, row: Row, sent: Body | None = None) -> Payer:
    """Who pays: what was said of the payer, the order's customer for the rest, and one of the banks."""
    sent = sent or {}
    customer, banks = row.public["customer"], draft.sandbox.rules.banks
    # Everybody has one account: the document decides the bank.
    ispb, bank = banks[crc32(customer["document"].encode()) % len(banks)]
    if "bank" in sent:
        ispb = next((code for code, name in banks if name == sent["bank"]), ispb)
    return Payer(
        sent.get("name", customer["name"]), sent.get("document", customer["document"]), ispb, sent.get("bank", bank)
    )


def fail(draft: Draft, row: Row, code: str) -> Record:
    """The payment is refused. Raises Conflict."""
    return _close(draft, row, "failed", orders.failure(code))


def expire(draft: Draft, row: Row) -> Record:
    """The order's time is over. Raises Conflict."""
    return _close(draft, row, "expired", {"status": "expired", "success": "false"})


def cancel(draft: Draft, row: Row) -> Record:
    """Nobody wants the order any more. Raises Conflict."""
    return _close(draft, row, "canceled", {"status": "canceled", "success": "false"})


def _close(draft: Draft, row: Row, status: str, transaction: dict[str, str]) -> Record:
    moved = move(lifecycle(draft, "Order"), row.public["status"], status)
    if moved is None:
        return row.record
    public = orders.closed(row.public, status, iso(draft.now), transaction)
    if status == "expired":
        # Expired by hand: its time ends now, so that expires_at and updatedAt agree.
        public["last_transaction"] = public["last_transaction"] | {"expires_at": public["updatedAt"]}
    record = draft.update(draft.store.orders, row, public)
    tell_order(draft, record, row.hidden, moved)
    return record


def tell_order(draft: Draft, record: Record, hidden: Body, moved: Move | None) -> None:
    """The events of an order's move."""
    if moved is not None and not moved.events:
        return
    previous = None if moved is None or moved.from_ == "new" else moved.from_
    draft.emit_move(draft.store.orders, record, moved, hidden["projectId"], orders.payload_extras(previous))
