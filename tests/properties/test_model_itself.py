"""The model says what the rules say: examples worked out by hand."""

import pytest

from . import model_billing as billing
from . import model_catalogue as catalogue
from . import model_clock as clock
from . import model_orders as orders
from . import model_periods as periods
from .model import Buyer, Order, Plan, Project, Subscription, World
from .model_figures import conversion, plan_view
from .moments import DAY, HOUR, iso, last_evening, later, parse

ANA, BIA = (Buyer(name, f"{name}@example.com", document) for name, document in (("ana", "1"), ("bia", "2")))


class Shop:
    """A world with one plan, and what one does there."""

    def __init__(
        self,
        unit: str | None = "month",
        *,
        method: str = "pix",
        start: str = "2027-01-10",
        trial_days: int = 0,
        limit: int | None = None,
    ) -> None:
        """Open for business."""
        self.world = World(parse(f"{start}T12:00:00.000Z"))
        self.project = Project("p", "Clube", "active")
        self.plan = Plan("l", self.project, "Mensal", 4990, unit, 1 if unit else None, trial_days)
        self.plan.methods, self.plan.limit = (method,), limit
        self.method = method
        self.world.projects.append(self.project)
        self.world.plans.append(self.plan)

    def order(self, who: Buyer = ANA) -> Order:
        """Somebody orders."""
        return orders.place(self.world, self.plan, who, self.method, 4990)

    def pay(self, who: Buyer = ANA) -> Order:
        """Somebody orders and pays."""
        order = self.order(who)
        if order.status == "pending":  # a card has paid already
            orders.pay(self.world, order)
        return order

    def until(self, day: str, time: str = "12:00:00.000") -> None:
        """The clock moves."""
        clock.advance(self.world, parse(f"{day}T{time}Z"))

    def move(self, to: str) -> None:
        """The project's state changes, and what is overdue then is done."""
        catalogue.move(self.world, self.project, to)
        clock.advance(self.world, self.world.now)

    @property
    def member(self) -> Subscription:
        """The newest subscription."""
        return self.world.subscriptions[-1]

    @property
    def shown(self) -> tuple[str, object, object, int]:
        """State, start and end of the period by day, and cycle."""
        view = periods.view(self.member, self.world.now)
        start, end = (str(view.get(f"current_period_{side}"))[:10] for side in ("start", "end"))
        return self.member.status, start, end, self.member.cycle


def test_a_month_of_brazil() -> None:
    """28 February, 22:30 in São Paulo, is 1 March in UTC; a month later it is 28 March, 22:30, there."""
    assert "2027-03-29T01:30:00.000Z" == iso(later(parse("2027-03-01T01:30:00.000Z"), "month", 1))
    assert "2027-03-01T01:30:00.000Z" == iso(later(parse("2027-02-01T01:30:00.000Z"), "month", 1))
    assert "2027-02-28T14:00:00.000Z" == iso(later(parse("2027-01-31T14:00:00.000Z"), "month", 1))
    assert "2027-03-31T14:00:00.000Z" == iso(later(parse("2027-01-31T14:00:00.000Z"), "month", 2))
    assert "2029-02-28T14:00:00.000Z" == iso(later(parse("2028-02-29T14:00:00.000Z"), "year", 1))


def test_the_next_last_evening() -> None:
    evening = parse("2027-02-01T01:30:00.000Z")
    assert [evening] * 2 == [last_evening(evening - 1), last_evening(parse("2027-01-10T12:00:00.000Z"))]
    assert parse("2027-03-01T01:30:00.000Z") == last_evening(evening)


def test_a_renewal_paid_early_moves_the_end_and_then_the_start() -> None:
    shop = Shop()
    shop.pay()
    shop.until("2027-02-07", "11:59:59.999")
    assert len(shop.world.orders) == 1
    shop.until("2027-02-07")  # three days before the end
    bill = shop.world.orders[-1]
    assert ("pending", "2027-02-17T12:00:00.000Z") == (bill.status, iso(bill.expires))
    orders.pay(shop.world, bill)
    assert ("active", "2027-01-10", "2027-03-10", 1) == shop.shown
    shop.until("2027-02-10")
    assert ("active", "2027-02-10", "2027-03-10", 1) == shop.shown


def test_a_member_who_pays_again_is_renewed_and_needs_no_bill() -> None:
    shop = Shop()
    shop.pay()
    shop.until("2027-02-12")
    assert ("past_due", "2027-01-10", "2027-02-10", 0) == shop.shown
    again = shop.pay()
    assert ("active", "2027-02-10", "2027-03-10", 1) == shop.shown
    assert (["paid", "canceled", "paid"], again) == ([order.status for order in shop.world.orders], shop.member.last)
    assert (1, 1) == (len(shop.world.subscriptions), shop.world.events["order.canceled"])


def test_a_member_on_trial_who_pays_again_stays_on_trial() -> None:
    shop = Shop(trial_days=7)
    shop.pay()
    shop.pay()
    assert ("trialing", "2027-03-17") == (shop.member.status, iso(periods.paid_until(shop.member))[:10])
    shop.until("2027-01-17")
    assert ("active", "2027-01-17", "2027-03-17", 1) == shop.shown


def test_a_card_pays_by_itself_when_the_period_ends() -> None:
    shop = Shop(method="credit_card")
    shop.pay()
    shop.until("2027-02-10", "11:59:59.999")
    assert len(shop.world.orders) == 1
    shop.until("2027-04-10")
    assert ("active", "2027-04-10", "2027-05-10", 3) == shop.shown
    assert 0 == shop.world.events["subscription.past_due"]
    assert 3 == shop.world.events["subscription.renewed"]


def test_a_card_whose_owner_has_a_failing_address_is_refused() -> None:
    shop = Shop(method="credit_card")
    shop.pay()
    shop.world.customers[0].email = "fail_immediately@example.com"
    shop.until("2027-02-10")
    bill = shop.world.orders[-1]
    assert ("past_due", "failed", "fail_immediately@example.com") == (shop.member.status, bill.status, bill.buyer.email)
    shop.until("2027-02-17")
    assert ("expired", ["paid"] + ["failed"] * 4) == (shop.member.status, [each.status for each in shop.world.orders])
    days = [iso(each.created)[:10] for each in shop.world.orders[1:]]
    assert ["2027-02-10", "2027-02-11", "2027-02-13", "2027-02-15"] == days
    assert 1 == shop.world.events["subscription.renewal_due"] == shop.world.events["subscription.past_due"]


@pytest.mark.parametrize("later_on", [False, True])
def test_a_canceled_member_has_no_open_bill(later_on: bool) -> None:
    shop = Shop()
    shop.pay()
    shop.until("2027-02-08")
    if later_on:
        billing.cancel_later(shop.world, shop.member)
    else:
        billing.cancel(shop.world, shop.member)
    assert ["paid", "canceled"] == [order.status for order in shop.world.orders]
    shop.until("2027-02-20")
    assert ("canceled", 2) == (shop.member.status, len(shop.world.orders))


def test_an_archive_ends_who_is_past_due_and_lets_others_run_out() -> None:
    shop = Shop()
    shop.pay()
    shop.until("2027-02-11")
    shop.pay(BIA)
    shop.move("archived")
    assert ["canceled", "active"] == [found.status for found in shop.world.subscriptions]
    shop.until("2027-03-11")
    assert ["canceled", "canceled"] == [found.status for found in shop.world.subscriptions]


def test_nobody_loses_time_while_a_project_is_suspended() -> None:
    """All that lay ahead comes later by the time in between: the end, the bill, and the periods that follow."""
    shop = Shop()
    shop.pay()
    shop.until("2027-02-08")
    bill = shop.world.orders[-1]
    shop.move("suspended")
    shop.until("2027-04-01")
    assert ("active", "pending", 2) == (shop.member.status, bill.status, len(shop.world.orders))
    assert not billing.may_renew(shop.member).granted
    shop.move("active")  # after 52 days
    assert ("active", "2027-01-10", "2027-04-03", 0) == shop.shown
    assert "2027-04-10T12:00:00.000Z" == iso(bill.expires)
    shop.until("2027-04-09")
    assert "past_due" == shop.member.status
    orders.pay(shop.world, bill)
    assert ("active", "2027-04-03", "2027-05-03", 1) == shop.shown


def test_grace_goes_on_when_a_project_does() -> None:
    shop = Shop()
    shop.pay()
    shop.until("2027-02-12")
    shop.move("suspended")
    shop.until("2027-04-01")
    assert ("past_due", "pending") == (shop.member.status, shop.world.orders[-1].status)
    shop.move("active")
    shop.until("2027-04-06", "11:59:59.999")
    assert ("past_due", "pending") == (shop.member.status, shop.world.orders[-1].status)
    shop.until("2027-04-06")
    assert ("expired", "expired") == (shop.member.status, shop.world.orders[-1].status)
    assert 1 == shop.world.events["subscription.past_due"]


def test_refunds_by_period() -> None:
    """The first of three periods is over, the second runs, the third is to come."""
    for number, expected in enumerate(
        [
            ("active", "2027-02-10", "2027-04-10", 2),
            ("canceled", "None", "None", 2),
            ("active", "2027-02-10", "2027-03-10", 1),
        ]
    ):
        shop = Shop()
        paid = [shop.pay() for _ in range(3)]
        shop.until("2027-02-11")
        orders.refund(shop.world, paid[number], 100)
        assert ("active", "2027-02-10", "2027-04-10", 2) == shop.shown
        orders.refund(shop.world, paid[number], None)
        assert expected == shop.shown


def test_bills_go_to_the_customer_as_it_is_now() -> None:
    shop = Shop()
    first = shop.pay()
    shop.world.customers[0].name = "Ana Lima"
    shop.until("2027-02-07")
    assert ["ana", "Ana Lima"] == [first.buyer.name, shop.world.orders[-1].buyer.name]
    assert {"id": None, "name": "Ana Lima", "email": "ana@example.com"} == periods.view(shop.member, 0)["customer"]


@pytest.mark.parametrize("unit", ["month", None])
def test_an_open_order_holds_a_seat(unit: str | None) -> None:
    shop = Shop(unit, limit=1)
    verdicts = [orders.may_place(shop.world, shop.project, shop.plan, "pix", who.document).codes for who in (ANA, BIA)]
    shop.order()
    verdicts += [orders.may_place(shop.world, shop.project, shop.plan, "pix", who.document).codes for who in (ANA, BIA)]
    assert [set(), set(), set(), {"plan_sold_out"}] == verdicts
    assert 0 == plan_view(shop.world, shop.plan)["subscribers_count"]
    shop.until("2027-01-11")  # it has expired
    assert orders.may_place(shop.world, shop.project, shop.plan, "pix", BIA.document).granted
    shop.pay(BIA)
    assert 1 == plan_view(shop.world, shop.plan)["subscribers_count"]
    assert not orders.may_place(shop.world, shop.project, shop.plan, "pix", ANA.document).granted


# Ordered on a Sunday: a boleto is due on Wednesday at 23:59:59 in Brasília.
@pytest.mark.parametrize(("method", "hours"), [("pix", 24), ("boleto", 87 - 1 / 3600)])
def test_every_order_ends(method: str, hours: float) -> None:
    shop = Shop(method=method)
    order = shop.order()
    assert order.created + round(hours * HOUR) == order.expires
    clock.advance(shop.world, order.created + 5 * DAY)
    assert ("expired", order.expires) == (order.status, order.updated)


def test_renewals_are_no_checkout() -> None:
    """Of three orders that buyers placed two were paid, the refunded one among them. The expired bill is none."""
    shop = Shop(start="2027-01-31")
    orders.refund(shop.world, shop.pay(), None)
    shop.pay(BIA)
    orders.end(shop.world, shop.order(), "failed", "order.payment_failed")
    shop.until("2027-03-20")
    assert "expired" == shop.world.orders[-1].status
    rate = conversion(shop.world, shop.project)
    assert rate is not None
    assert (2, 3) == rate.as_integer_ratio()
