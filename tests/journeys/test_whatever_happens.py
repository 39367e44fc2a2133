"""Whatever payers, banks, merchants and time do in whatever order: what every world promises holds after each step."""

from collections.abc import Callable
from random import Random

import httpx2
import pytest

from ..support.live import Live
from ..support.make import Json, make_project, order_body
from .members import METHODS, broken, buyer, plan_of
from .stage import DAY, Stage, staged
from .steps import done

MAGIC = (None, None, None, "succeed_with_delay", "refund_after_payment", "fill_never", "expire_with_delay")
MOVES = ("activate", "activate", "suspend", "suspend", "archive")
STEPS = 60


class Market:
    """One merchant with a few plans and a few buyers, to whom things happen by chance."""

    def __init__(self, stage: Stage, chance: Random) -> None:
        self.stage, self.chance = stage, chance
        self.plans: list[Json] = []
        for _ in range(2):
            project = make_project(stage.api)["id"]
            for interval in chance.sample(["day", "week", "month"], 2):
                trial, seats = chance.choice([0, 0, 2]), chance.choice([None, None, 2])
                changes = {"interval": interval, "trial_period_days": trial, "max_subscribers": seats}
                self.plans.append(plan_of(stage, projectId=project, **changes))
        self.plans.append(plan_of(stage, billing_type="one_time", max_subscribers=2))
        words = [chance.choice(MAGIC) for _ in range(4)]
        self.buyers = [buyer(word and f"{word}.{number}@example.com") for number, word in enumerate(words)]

    def post(self, client: httpx2.Client, path: str, body: Json | None = None) -> int:
        """Ask for something that may be refused, but for no other reason than the state of things."""
        response = client.post(path, json=body)
        assert response.status_code in (200, 201, 409), response.text
        return response.status_code

    def orders(self) -> list[Json]:
        """The merchant's newest orders."""
        found: list[Json] = done(self.stage.api.get("/v2/orders", params={"limit": 12}))["orders"]
        return found

    def subscriptions(self) -> list[Json]:
        """The merchant's newest subscriptions."""
        found: list[Json] = done(self.stage.api.get("/v2/subscriptions", params={"limit": 12}))["subscriptions"]
        return found

    def place(self) -> int:
        """An order, which is paid at once more often than not."""
        plan, who = self.chance.choice(self.plans), self.chance.choice(self.buyers)
        body = order_body(plan["projectId"], plan["id"], customer=who, paymentMethod=self.chance.choice(METHODS))
        response = self.stage.api.post("/v2/orders", json=body)
        assert response.status_code in (201, 409), response.text
        if response.status_code == 201 and self.chance.random() < 0.7:
            self.post(self.stage.control, f"/orders/{response.json()['id']}/pay")
        return response.status_code

    def drive(self) -> int:
        """Something that a payer or a bank does to an order."""
        verb = self.chance.choice(["pay", "pay", "pay", "fail", "expire", "cancel", "refund", "refund", "dispute"])
        orders = self.orders()
        return self.post(self.stage.control, f"/orders/{self.chance.choice(orders)['id']}/{verb}") if orders else 0

    def hold(self) -> int:
        """Something that a member or time does to a subscription."""
        held = self.subscriptions()
        if not held:
            return 0
        verb, body = self.chance.choice(
            [("renew", None), ("renew", None), ("expire", None), ("cancel", None), ("cancel", {"at_period_end": True})]
        )
        return self.post(self.stage.control, f"/subscriptions/{self.chance.choice(held)['id']}/{verb}", body)

    def rule(self) -> int:
        """Something that the merchant does to a project; he seldom closes one for good."""
        action = self.chance.choice(MOVES)
        if action == "archive" and self.chance.random() < 0.7:
            action = "suspend"
        return self.post(self.stage.api, f"/v2/projects/{self.chance.choice(self.plans)['projectId']}/{action}")

    def wait(self) -> int:
        """Time passes: hours, days or weeks, to the millisecond of an end now and then."""
        ends = [each["next_billing_at"] for each in self.subscriptions() if each["next_billing_at"]]
        if ends and self.chance.random() < 0.3:
            to = self.chance.choice(ends)
            if to > self.stage.now():
                self.stage.go_to(to)
                return 200
        self.stage.advance(self.chance.choice([0.25, 0.5, 1, 2, 3.5, 7, 9]) * DAY)
        return 200


@pytest.mark.parametrize("seed", range(12))
def test_every_promise_is_kept_after_each_step(live: Live, sink: str, seed: int) -> None:
    """No period that does not run, no bill of the dead, nothing pending past its end, one subscription each."""
    chance, name = Random(seed), f"whatever-{seed}"
    with staged(live, name, sink) as stage:
        market = Market(stage, chance)
        sandbox = live.app.sandboxes.find(name)
        assert sandbox is not None
        happenings: list[Callable[[], int]] = [market.place, market.drive, market.hold, market.rule, market.wait]
        done_so_far: list[str] = []
        for _ in range(STEPS):
            happening = chance.choices(happenings, (4, 3, 3, 1, 3))[0]
            done_so_far.append(f"{happening.__name__} {happening()}")
            stage.now()  # what is due at once is done before the next request
            assert [] == broken(sandbox), done_so_far[-5:]
    live.forget(name)
