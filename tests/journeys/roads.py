"""The roads by which a subscription comes to each of its moves: one for each trigger that the
contract names.
"""

from collections.abc import Callable

from ..support.make import Json, card_body, created, done, make_order, make_plan
from .stage import DAY, Stage, by_code

AUTOPAY = 60
LATE = 27 * 3600  # longer than the lead of a daily plan and shorter than its lead and grace


def paid(trial: int = 0, magic: str | None = None, wait: float = 0) -> Callable[[Stage], str]:
    """An order for a plan, paid by hand or by waiting."""

    def open_(stage: Stage) -> str:
        order = stage.order("pending", make_plan(stage.api, trial_period_days=trial), magic)
        if wait:
            stage.advance(wait)
        else:
            stage.drive("orders", order["id"], "pay")
        return str(stage.subscription_of(order["id"])["id"])

    return open_


def by_card(trial: int = 0) -> Callable[[Stage], str]:
    """A card pays its order as it is made."""

    def open_(stage: Stage) -> str:
        plan = make_plan(stage.api, trial_period_days=trial, payment_methods=["credit_card"])
        order = created(stage.api.post("/v2/orders", json=card_body(plan)))
        return str(stage.subscription_of(order["id"])["id"])

    return open_


def renewed_by_card(state: str) -> Callable[[Stage], str]:
    """A subscriber orders once more, by card."""

    def renew(stage: Stage) -> str:
        held = stage.subscription(state)
        done(
            stage.api.put(
                f"/v2/plans/{held['planId']}", json={"payment_methods": ["pix", "credit_card"]}
            )
        )
        customer = stage.get_order(held["orderId"])["customer"]
        body = card_body({"projectId": held["projectId"], "id": held["planId"]}, customer=customer)
        created(stage.api.post("/v2/orders", json=body))
        return str(held["id"])

    return renew


def driven(state: str, verb: str, **body: object) -> Callable[[Stage], str]:
    def drive(stage: Stage) -> str:
        ident: str = stage.subscription(state)["id"]
        stage.drive("subscriptions", ident, verb, **body)
        return ident

    return drive


def waiting(until: str, state: str = "active") -> Callable[[Stage], str]:
    """To the end of the trial or of the paid period."""

    def wait(stage: Stage) -> str:
        held = stage.subscription(state)
        stage.go_to(held[until])
        return str(held["id"])

    return wait


def renewal_due(stage: Stage) -> Json:
    """An active subscription whose renewal order waits to be paid."""
    held = stage.subscription("active")
    while stage.get_subscription(held["id"])["lastOrderId"] == held["orderId"]:
        stage.advance(DAY)
    return stage.get_subscription(held["id"])


def renewed_by_hand(stage: Stage) -> str:
    held = renewal_due(stage)
    stage.drive("orders", held["lastOrderId"], "pay")
    return str(held["id"])


def renewed_late_by_hand(stage: Stage) -> str:
    held = stage.subscription("past_due")
    stage.drive("orders", held["lastOrderId"], "pay")
    return str(held["id"])


def renewed_by_magic(stage: Stage) -> str:
    """The renewal order has the buyer's e-mail address, and so his luck."""
    held = stage.subscription("active", magic="succeed_immediately")
    stage.go_to(held["current_period_end"])
    return str(held["id"])


def renewed_late_by_magic(stage: Stage) -> str:
    """Another order of a customer who is past due is paid by a magic value."""
    held = stage.subscription("past_due")
    customer = stage.get_order(held["orderId"])["customer"] | {
        "email": "succeed_immediately@example.com"
    }
    make_order(stage.api, {"projectId": held["projectId"], "id": held["planId"]}, customer=customer)
    stage.advance(1)
    return str(held["id"])


def renewed_by_clock(stage: Stage) -> str:
    order = stage.order("pending", make_plan(stage.api))
    stage.advance(AUTOPAY)
    held = stage.subscription_of(order["id"])
    stage.go_to(held["current_period_end"])
    return str(held["id"])


def renewed_late_by_clock(stage: Stage) -> str:
    order = stage.order("pending", make_plan(stage.api, interval="day"), totalAmount=1)
    stage.drive("orders", order["id"], "pay")
    held = stage.subscription_of(order["id"])
    stage.go_to(held["current_period_end"])
    assert stage.get_subscription(held["id"])["status"] == "past_due"
    stage.advance(18 * 3600)
    return str(held["id"])


def given_up(stage: Stage) -> str:
    ident: str = stage.subscription("past_due")["id"]
    stage.advance(7 * DAY)
    return ident


def lost(state: str) -> Callable[[Stage], str]:
    def lose(stage: Stage) -> str:
        held = stage.subscription(state)
        stage.drive("orders", held["orderId"], "dispute")
        stage.drive("orders", held["orderId"], "dispute/resolve", outcome="lost")
        return str(held["id"])

    return lose


def refunded(state: str) -> Callable[[Stage], str]:
    def refund(stage: Stage) -> str:
        held = stage.subscription(state)
        stage.drive("orders", held["orderId"], "refund")
        return str(held["id"])

    return refund


def refunded_by_magic(state: str) -> Callable[[Stage], str]:
    def refund(stage: Stage) -> str:
        held = stage.subscription(state, magic="refund_after_payment")
        stage.advance(60)
        return str(held["id"])

    return refund


def ended_with_its_period(stage: Stage) -> str:
    held = stage.subscription("active")
    stage.drive("subscriptions", held["id"], "cancel", at_period_end=True)
    stage.go_to(held["current_period_end"])
    return str(held["id"])


def archived(by: str) -> Callable[[Stage], str]:
    """The project of a subscription that is past due is archived."""

    def close(stage: Stage) -> str:
        held = stage.subscription("past_due")
        project = f"/v2/projects/{held['projectId']}"
        if by == "archiveProject":
            done(stage.api.post(f"{project}/archive"))
        elif by == "updateProject":
            done(stage.api.put(project, json={"status": "archived"}))
        else:
            done(stage.api.patch(f"{project}/status", json={"status": "archived"}))
        return str(held["id"])

    return close


def renewed_in_trial(magic: str | None = None, wait: float = 0) -> Callable[[Stage], str]:
    """Another order of a customer who is on trial is paid."""

    def renew(stage: Stage) -> str:
        held = stage.subscription("trialing")
        customer = stage.get_order(held["orderId"])["customer"]
        customer |= {"email": f"{magic}@example.com"} if magic else {}
        order = make_order(
            stage.api, {"projectId": held["projectId"], "id": held["planId"]}, customer=customer
        )
        if wait:
            stage.advance(wait)
        else:
            stage.drive("orders", order["id"], "pay")
        return str(held["id"])

    return renew


ROADS: dict[tuple[str, str, str, str], Callable[[Stage], str]] = {
    ("new", "active", "subscription.created", "payOrder"): paid(),
    ("new", "active", "subscription.created", "simulation"): paid(
        magic="succeed_immediately", wait=1
    ),
    ("new", "active", "subscription.created", "clock"): paid(wait=AUTOPAY),
    ("new", "active", "subscription.created", "createOrder"): by_card(),
    ("new", "trialing", "subscription.created", "createOrder"): by_card(7),
    ("active", "active", "subscription.renewed", "createOrder"): renewed_by_card("active"),
    ("past_due", "active", "subscription.renewed", "createOrder"): renewed_by_card("past_due"),
    ("trialing", "trialing", "subscription.renewed", "createOrder"): renewed_by_card("trialing"),
    ("new", "trialing", "subscription.created", "payOrder"): paid(7),
    ("new", "trialing", "subscription.created", "simulation"): paid(7, "succeed_with_delay", 180),
    ("new", "trialing", "subscription.created", "clock"): paid(7, wait=AUTOPAY),
    ("trialing", "active", "subscription.activated", "clock"): waiting("trial_end", "trialing"),
    ("active", "active", "subscription.renewed", "payOrder"): renewed_by_hand,
    ("active", "active", "subscription.renewed", "renewSubscription"): driven("active", "renew"),
    ("active", "active", "subscription.renewed", "simulation"): renewed_by_magic,
    ("active", "active", "subscription.renewed", "clock"): renewed_by_clock,
    ("past_due", "active", "subscription.renewed", "payOrder"): renewed_late_by_hand,
    ("past_due", "active", "subscription.renewed", "renewSubscription"): driven(
        "past_due", "renew"
    ),
    ("past_due", "active", "subscription.renewed", "simulation"): renewed_late_by_magic,
    ("past_due", "active", "subscription.renewed", "clock"): renewed_late_by_clock,
    ("active", "active", "subscription.renewal_due", "clock"): lambda stage: str(
        renewal_due(stage)["id"]
    ),
    ("active", "past_due", "subscription.past_due", "clock"): waiting("current_period_end"),
    ("past_due", "expired", "subscription.expired", "clock"): given_up,
    ("past_due", "expired", "subscription.expired", "expireSubscription"): driven(
        "past_due", "expire"
    ),
    ("trialing", "canceled", "subscription.canceled", "cancelSubscription"): driven(
        "trialing", "cancel"
    ),
    ("trialing", "canceled", "subscription.canceled", "refundOrder"): refunded("trialing"),
    ("trialing", "canceled", "subscription.canceled", "resolveDispute"): lost("trialing"),
    ("trialing", "canceled", "subscription.canceled", "simulation"): refunded_by_magic("trialing"),
    ("trialing", "canceled", "subscription.canceled", "clock"): refunded_by_magic("trialing"),
    ("active", "canceled", "subscription.canceled", "cancelSubscription"): driven(
        "active", "cancel"
    ),
    ("active", "canceled", "subscription.canceled", "refundOrder"): refunded("active"),
    ("active", "canceled", "subscription.canceled", "resolveDispute"): lost("active"),
    ("active", "canceled", "subscription.canceled", "simulation"): refunded_by_magic("active"),
    ("active", "canceled", "subscription.canceled", "clock"): ended_with_its_period,
    ("past_due", "canceled", "subscription.canceled", "cancelSubscription"): driven(
        "past_due", "cancel"
    ),
    ("past_due", "canceled", "subscription.canceled", "archiveProject"): archived("archiveProject"),
    ("past_due", "canceled", "subscription.canceled", "updateProjectStatus"): archived(
        "updateProjectStatus"
    ),
    ("past_due", "canceled", "subscription.canceled", "updateProject"): archived("updateProject"),
    ("trialing", "trialing", "subscription.renewed", "payOrder"): renewed_in_trial(),
    ("trialing", "trialing", "subscription.renewed", "simulation"): renewed_in_trial(
        "succeed_immediately", 1
    ),
    ("trialing", "trialing", "subscription.renewed", "clock"): renewed_in_trial(wait=AUTOPAY),
}
ROADS |= {
    (*key[:3], "payPixCode"): by_code(road)
    for key, road in list(ROADS.items())
    if key[3] == "payOrder"
}
