"""What a sequence may do to the clock and to what lives by it."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from . import model_billing as billing
from . import model_clock as clock
from . import model_periods as periods
from .bench import DOCUMENTS, Bench, pick
from .client import agree
from .model import Subscription
from .moments import DAY, HOUR, MINUTE, SECOND, last_evening
from .rules_sales import buyer, pay, place

NUMBER = st.integers(0, 5)
LEAPS = (SECOND, 5 * MINUTE, HOUR, 13 * HOUR, DAY, 3 * DAY, 8 * DAY, 30 * DAY, 95 * DAY, 400 * DAY)


def live_a_period(
    bench: Bench, memberships: list[Subscription], number: int, *, late: bool
) -> None:
    """Wait for the bill of one that runs and pay it, at once or only when it is past due; a card
    pays by itself.
    """
    found = pick([item for item in memberships if item.running], number)
    if found is None:
        return
    if found.status == "trialing" and found.trial is not None:
        bench.advance(max(bench.world.now, found.trial[1]))
    elif found.status == "active":
        due = periods.paid_until(found) if late else periods.billed_at(found)
        bench.advance(max(bench.world.now, due))
    if found.renewal is not None and found.renewal.status == "pending":
        pay(bench, found.renewal)


class TimeRules:
    """Mixed into the machine."""

    bench: Bench

    @rule(leap=st.sampled_from(LEAPS))
    def advance(self, leap: int) -> None:
        """Minutes to months."""
        self.bench.advance(self.bench.world.now + leap)

    @rule(beside=st.sampled_from((-1, 0, 0, 1, HOUR)))
    def advance_to_next(self, beside: int) -> None:
        """To the next thing that time will do, just before it or a little later."""
        world = self.bench.world
        due = min((job[0] for job in clock.jobs(world)), default=None)
        if due is not None and due + beside >= world.now:
            self.bench.advance(due + beside)
            self.bench.mark("advanced to a job")

    @rule(buys=st.booleans(), number=NUMBER)
    def wait_for_a_last_evening(self, buys: bool, number: int) -> None:
        """To half past ten in São Paulo on a month's last day; whoever buys then has a day that UTC
        does not know.
        """
        self.bench.advance(last_evening(self.bench.world.now))
        plan = pick(
            [plan for plan in self.bench.world.plans if plan.unit in ("month", "year")], number
        )
        if buys and plan is not None:
            order = place(self.bench, plan, buyer(DOCUMENTS[number]), plan.methods[0], plan.amount)
            if order is not None:
                pay(self.bench, order)

    @precondition(lambda self: any(found.running for found in self.bench.world.subscriptions))
    @rule(number=NUMBER, late=st.integers(0, 3), times=st.integers(1, 2))
    def live_on(self, number: int, late: int, times: int) -> None:
        """A period or two of a membership."""
        for _ in range(times):
            live_a_period(self.bench, self.bench.world.subscriptions, number, late=not late)

    @precondition(lambda self: any(found.running for found in self.bench.world.subscriptions))
    @rule(late=st.integers(0, 3))
    def renew_the_newest(self, late: int) -> None:
        """One period of the newest membership."""
        live_a_period(self.bench, self.bench.world.subscriptions, 0, late=not late)

    @precondition(lambda self: self.bench.world.subscriptions)
    @rule(
        number=NUMBER,
        verb=st.sampled_from(("cancel", "later", "renew", "renew", "expire", "resume")),
    )
    def steer_subscription(self, number: int, verb: str) -> None:
        """Cancel, renew, expire or resume, also where that is refused."""
        found = pick(self.bench.world.subscriptions, number)
        assert found is not None
        self._steered(found, verb)

    @precondition(
        lambda self: any(found.status == "active" for found in self.bench.world.subscriptions)
    )
    @rule(
        number=NUMBER,
        verb=st.sampled_from(("later", "later", "cancel")),
        late=st.booleans(),
        stays=st.sampled_from((None, None, "resume", "renew")),
    )
    def leave(self, number: int, verb: str, late: bool, stays: str | None) -> None:
        """A member who has an open bill, or is past due, goes, and may think better of it."""
        bench = self.bench
        found = pick(
            [found for found in bench.world.subscriptions if found.status == "active"], number
        )
        if found is None:
            return
        if not found.stopped:
            bench.advance(
                max(
                    bench.world.now, periods.paid_until(found) if late else periods.billed_at(found)
                )
            )
        if found.renewal is not None and found.renewal.status == "pending":
            bench.mark(f"canceled with an open bill, {verb} (S1)")
        self._steered(found, verb)
        if stays is not None:
            self._steered(found, stays)

    def _steered(self, found: Subscription, verb: str) -> None:
        bench = self.bench
        path = f"/_sandbox/subscriptions/{found.id}/{'cancel' if verb == 'later' else verb}"
        may = {
            "renew": billing.may_renew,
            "expire": billing.may_expire,
            "resume": billing.may_resume,
        }
        verdict = may.get(verb, billing.may_cancel)(found)
        body = {"at_period_end": True} if verb == "later" else None
        reply = bench.hold(bench.client.ask("POST", path, body), verdict)
        bench.touched = found.plan.project
        if reply.granted:
            self._steer(found, verb)
            shown = reply.body["subscription"]
            paid = reply.body["order"]
            # the clock may make another one at the same instant
            if verb == "renew" and found.last.id is None:
                found.last.id = paid["id"]
            # The answer is of this moment: what has fallen due by it, such as the next bill, the
            # clock does afterwards.
            agree(f"{verb} {found.id}", periods.view(found, bench.world.now), shown)
            bench.settle()

    def _steer(self, found: Subscription, verb: str) -> None:
        world = self.bench.world
        if verb == "renew":
            billing.renew(world, found)
        elif verb == "resume":
            billing.resume(world, found)
        elif verb == "expire" and found.status == "past_due":
            billing.expire(world, found)
        elif verb == "cancel" and found.running:
            billing.cancel(world, found)
        elif verb == "later" and found.running:
            billing.cancel_later(world, found)
