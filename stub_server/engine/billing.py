"""What happens to orders, and to the subscriptions that they open and renew.

Operations, controls, the clock and magic values call these functions. Each adds to a draft: the
order, the subscription that it changes, their events and timers.
"""

from typing import NamedTuple
from zlib import crc32

from ..contract.document import Move
from ..core.clock import SECOND, iso, parse_iso
from ..core.record import Body, Record, Row
from ..domain import orders, payments, subscriptions
from ..domain.lifecycle import legal, move
from ..domain.payments import Payer
from .draft import Draft

# -- in which state something is


def is_payable(draft: Draft, row: Row) -> bool:
    """Whether an order can be paid."""
    return row.public["status"] in draft.states("Order", "payable")


def is_running(draft: Draft, row: Row) -> bool:
    """Whether a subscription has not ended."""
    return row.public["status"] in draft.states("Subscription", "running")


def is_project_open(draft: Draft, project_id: str) -> bool:
    """Whether a project has not been archived: only then subscriptions are renewed."""
    project = draft.store.projects.peek(project_id)
    return project is not None and project["status"] in draft.states("Project", "open")


def payable_late(draft: Draft, index: str, ident: str) -> Body | None:
    """A boleto of a plan or a project (`index`) that has expired and can still be paid late."""
    table = draft.store.orders
    for key in reversed(table.bucket(f"{index}+status", (ident, "expired"))):
        if b'"boleto"' in table.rows[key].public:  # others are not worth parsing: there are many
            public = table.parse(table.rows[key]).public
            if payments.can_be_late(public, draft.now):
                return public
    return None


# -- orders


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
        if orders.is_prompt(orders.token_of(row.public, row.hidden)) and is_payable(draft, row):
            return pay(draft, row)
    return record


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


AUTOPAID = ("pix", "boleto")  # what `autopay` pays: cards are charged, not paid


def payer_of(draft: Draft, row: Row, sent: Body | None = None) -> Payer:
    """Who pays: what `sent` says of the payer; else the order's customer, with one of the banks."""
    sent = sent or {}
    customer, banks = row.public["customer"], draft.sandbox.rules.banks
    # Everybody has one account: the document decides the bank.
    ispb, bank = banks[crc32(customer["document"].encode()) % len(banks)]
    if "bank" in sent:
        ispb = next((code for code, name in banks if name == sent["bank"]), ispb)
    return Payer(
        sent.get("name", customer["name"]),
        sent.get("document", customer["document"]),
        ispb,
        sent.get("bank", bank),
    )


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


# -- payments


def pay(
    draft: Draft,
    row: Row,
    payer: Payer | None = None,
    paid_at: int | None = None,
    amount: int | None = None,
    *,
    late: bool = False,
) -> Record:
    """The order is paid, and opens or renews a subscription of its plan. Raises Conflict.

    `amount` (cents) and `paid_at` (ms) are the order's total and now unless the payment says
    otherwise. With `late` a boleto that expired can be paid too.
    """
    orders_ = draft.lifecycle("Order")
    payments.check_payable(row.public, amount, paid_at, draft.now, orders_, late=late)
    moved = move(orders_, row.public["status"], "paid")
    payer = payer or payer_of(draft, row)
    public, hidden = payments.paid(
        row.public,
        row.hidden,
        payer,
        suffix=draft.ids.alnum(11),
        paid_at=paid_at or draft.now,
        now=draft.now,
    )
    renewed = _renewed_by(draft, hidden)
    if renewed is not None:
        hidden = hidden | {"subscriptionId": renewed.id, "renewal": True}
        record = change_order(draft, row, moved, public, hidden)
        _renew(draft, renewed, record.id, public["paymentMethod"])
        return record
    opened = _opened_by(draft, public, hidden)
    if opened is not None:
        hidden = hidden | {"subscriptionId": opened[0]["id"], "renewal": False}
    record = change_order(draft, row, moved, public, hidden)
    if opened is not None:
        _open(draft, *opened)
    return record


def refund(draft: Draft, row: Row, amount: int | None = None) -> Record:
    """Refund an order in full or part (cents).

    A full refund ends what it paid for. Raises Conflict.
    """
    table, status = draft.lifecycle("Order"), row.public["status"]
    amount = payments.check_refundable(row.public, row.hidden, amount, draft.now, table)
    if amount == payments.left(row.hidden):
        moved = legal(table, status, "refunded")
    else:
        moved = legal(table, status, status, "partially_refunded")
    return give_back(draft, row, amount, moved)


def give_back(draft: Draft, row: Row, amount: int, moved: Move) -> Record:
    """The order after a move that returns so many cents.

    A full refund ends what the order paid for.
    """
    public, hidden = payments.refunded(row.public, row.hidden, amount, draft.ids.uuid(), draft.now)
    record = change_order(draft, row, moved, public, hidden)
    if not payments.left(hidden) and hidden["subscriptionId"] is not None:
        _take_back(draft, hidden["subscriptionId"], row.id)
    return record


def _take_back(draft: Draft, ident: str, order_id: str) -> None:
    """The order of a period is refunded: that of the running one ends the subscription, a later
    period is removed.
    """
    row = draft.open(draft.store.subscriptions, ident)
    if row is None or row.public["status"] == "past_due" or not is_running(draft, row):
        return  # none of its periods runs
    paid_by = row.hidden["paid_by"]
    if order_id == paid_by[0]:
        end_subscription(draft, row, "canceled")
    elif order_id in paid_by:
        public, hidden = subscriptions.withdrawn(row.public, row.hidden, draft.now, order_id)
        draft.update(draft.store.subscriptions, row, public, hidden)
        schedule(draft, ident, public, hidden)


# -- subscriptions, as orders open and renew them


def running_of(draft: Draft, customer_id: str, plan_id: str) -> Row | None:
    """The running subscription of a customer to a plan; there are never two."""
    table, of = draft.store.subscriptions, (customer_id, plan_id)
    for row in table.rows_of("customerId+planId", of):
        if is_running(draft, row):
            return row
    return None


def _renewed_by(draft: Draft, order: Body) -> Row | None:
    """The running subscription that a paid order renews: its own, or the customer's of
    the same plan.
    """
    table = draft.store.subscriptions
    if order["renewal"]:
        row = draft.open(table, order["subscriptionId"])
        if row is not None and is_running(draft, row):
            return row
    return running_of(draft, order["customerId"], order["planId"])


def _opened_by(draft: Draft, order: Body, hidden: Body) -> tuple[Body, Body] | None:
    """The subscription that the first payment on a recurring plan opens: its public and
    hidden part.
    """
    store = draft.store
    plan = store.plans.peek(hidden["planId"])
    if plan is None or plan["billing_type"] != "recurring":
        return None
    customer = draft.open(store.customers, hidden["customerId"])
    if customer is None:
        return None
    first = store.subscriptions.count("customerId+planId", (customer.id, plan["id"])) == 0
    known = customer.public
    if hidden["copy_only"]:
        known = known | order["customer"]
    return subscriptions.opened(
        ident=draft.ids.uuid(),
        code=draft.code_for(store.subscriptions),
        defaults=dict(draft.sandbox.rules.defaults["Subscription"]),
        plan=plan,
        order=order,
        order_hidden=hidden,
        customer=known,
        now=draft.now,
        trial=first and plan["trial_period_days"] > 0,
    )


def _open(draft: Draft, public: Body, hidden: Body) -> None:
    record = draft.create(draft.store.subscriptions, public["id"], public, hidden)
    emit_subscription(draft, record, public, "new")
    schedule(draft, record.id, public, hidden)
    if not is_project_open(draft, public["projectId"]):  # its order was paid late
        end_later(draft, Row(record, public, hidden))


def _renew(draft: Draft, row: Row, order_id: str, method: str) -> None:
    """One more period is paid, by the open order or by another one, which cancels the open one."""
    if row.hidden["renewal_order"] != order_id:
        call_off_bill(draft, row)
    public = row.public
    if public["cancel_at_period_end"] and is_project_open(draft, public["projectId"]):
        public = subscriptions.resumed(public, row.hidden, draft.now)
    public, hidden = subscriptions.renewed(public, row.hidden, draft.now, order_id, method)
    change_subscription(draft, row, public, hidden, "renewed")
    # What was due in a dispute was not done: a period that is paid now may have begun already.
    schedule(draft, row.id, public, hidden, None if subscriptions.has_dispute(hidden) else 1)


def schedule(draft: Draft, ident: str, public: Body, hidden: Body, paid: int | None = None) -> None:
    """The timers of a subscription.

    `paid` is how many of its newest periods have none yet, all of them by default.
    """
    if public["status"] == "trialing":
        draft.at(parse_iso(public["trial_end"]), "subscription.activate", ident)
        return  # the others are set then
    if public["status"] == "past_due":
        if public["paymentMethod"] == subscriptions.CHARGED:
            for at in subscriptions.attempts(public, hidden):
                if at > draft.now:
                    draft.at(at, "subscription.charge", ident)
        draft.at(subscriptions.grace_end(public, hidden), "subscription.expire", ident)
        return
    newest = hidden["ends"]
    if paid is not None:
        newest = newest[-paid:]
    for end in newest[:-1]:
        draft.at(end, "subscription.end", ident)
    draft.at(subscriptions.renewal_at(public, hidden), "subscription.renew", ident)
    draft.at(subscriptions.period_end(hidden), "subscription.end", ident)


def call_off_bill(draft: Draft, row: Row) -> None:
    """Cancel the open order of a subscription, if there is one."""
    bill = draft.open(draft.store.orders, row.hidden["renewal_order"])
    if bill is not None and is_payable(draft, bill):
        cancel(draft, bill)


def end_subscription(draft: Draft, row: Row, status: str) -> Record:
    """End a subscription, canceled or expired, and cancel its open order. Raises Conflict."""
    if move(draft.lifecycle("Subscription"), row.public["status"], status) is None:
        return row.record
    call_off_bill(draft, row)
    public = subscriptions.ended(row.public, status, draft.now)
    return change_subscription(draft, row, public)


def end_later(draft: Draft, row: Row) -> Record:
    """Cancel a subscription at the end of the paid period, or at once if that is over, and cancel
    its open order.
    """
    if row.public["status"] == "past_due":
        return end_subscription(draft, row, "canceled")
    call_off_bill(draft, row)
    public = subscriptions.ending(row.public, row.hidden, draft.now)
    if subscriptions.has_dispute(row.hidden):  # its period may be over already
        draft.at(draft.now, "subscription.end", row.id)
    return draft.update(
        draft.store.subscriptions, row, public, row.hidden | {"renewal_order": None}
    )


def change_subscription(
    draft: Draft, row: Row, public: Body, hidden: Body | None = None, name: str | None = None
) -> Record:
    """A subscription after a move, with its events."""
    record = draft.update(draft.store.subscriptions, row, public, hidden)
    emit_subscription(draft, record, public, row.public["status"], name)
    return record


def emit_subscription(
    draft: Draft, record: Record, public: Body, previous: str, name: str | None = None
) -> None:
    """The events of a subscription's move from its previous state to the one it has."""
    status = public["status"]
    moved = draft.lifecycle("Subscription").find(
        previous, status, name if previous == status else None
    )
    draft.emit_move(draft.store.subscriptions, record, moved, public["projectId"])
