"""What a sequence may do to the clock and to what lives by it."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from . import model_billing as billing
from .bench import Bench, pick
from .client import agree
from .model import Subscription
from .moments import DAY, HOUR, MINUTE, SECOND
from .rules_sales import pay

NUMBER = st.integers(0, 5)
LEAPS = (SECOND, 5 * MINUTE, HOUR, 13 * HOUR, DAY, 3 * DAY, 8 * DAY, 30 * DAY, 95 * DAY, 400 * DAY)


def live_a_period(bench: Bench, memberships: list[Subscription], number: int, *, late: bool) -> None:
    """Wait for the renewal order of one that runs and pay it, at once or only when it is past due."""
    found = pick([item for item in memberships if item.running], number)
    if found is None:
        return
    if found.status == "trialing":
        bench.advance(found.anchor)
    elif found.status == "active":
        due = billing.period(found)[1] if late else billing.renewal_at(found)
        bench.advance(max(bench.world.now, due))
    if found.renewal is not None and found.renewal.status == "pending":
        bench.mark("renewal paid late" if found.status == "past_due" else "renewal paid early")
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
        due = min((at for at, _ in billing.jobs(world)), default=None)
        if due is not None and due + beside >= world.now:
            self.bench.advance(due + beside)
            self.bench.mark("advanced to a job")

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
    @rule(number=NUMBER, verb=st.sampled_from(("cancel", "later", "renew", "renew", "expire")))
    def steer_subscription(self, number: int, verb: str) -> None:
        """Cancel, renew or expire, also where that is refused."""
        bench = self.bench
        found = pick(bench.world.subscriptions, number)
        assert found is not None
        path = f"/_sandbox/subscriptions/{found.id}/{'cancel' if verb == 'later' else verb}"
        verdict = {"renew": billing.may_renew, "expire": billing.may_expire}.get(verb, billing.may_cancel)(found)
        body = {"at_period_end": True} if verb == "later" else None
        reply = bench.hold(bench.client.ask("POST", path, body), verdict)
        bench.touched = found.plan.project
        if verdict.granted:
            self._steer(found, verb)
            bench.settle()
            shown = reply.body["subscription"]
            agree(f"{verb} {found.id}", {"id": found.id, "cancel_at_period_end": found.ends}, shown)

    def _steer(self, found: Subscription, verb: str) -> None:
        world = self.bench.world
        if verb == "renew":
            billing.renew(world, found)
        elif verb == "expire" and found.status == "past_due":
            billing.expire(world, found)
        elif verb == "cancel" and found.running:
            billing.cancel(world, found)
        elif verb == "later" and found.running:
            billing.cancel_later(found)
