"""Where model and server are held side by side: one sandbox, one world, and what both are asked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

from stub_server.domain.cpf import cpf_with_check_digits

from . import model_clock as clock
from . import model_periods as periods
from .client import Client, Disagreement, Reply, agree
from .model import Json, Order, Plan, Project, Subscription, World, granted
from .model_figures import conversion, monthly, plan_view, project_view, stats_view, ticket
from .model_orders import FAILURES
from .moments import DAY, HOUR, MINUTE, iso, parse

Item = TypeVar("Item")
DOCUMENTS = tuple(cpf_with_check_digits(f"{987_000_000 + number}") for number in range(6))
UNKNOWN = "00000000-0000-4000-8000-000000000000"
WARNINGS = {"amount_mismatch", "price_mismatch", "trial_ignored", "customer_differs"}
HALF_A_CENT = Fraction(1, 200)  # a figure is rounded once


@dataclass(slots=True)
class Tally:
    """How far the sequences went."""

    sequences: int = 0
    full: int = 0
    steps: int = 0
    requests: int = 0
    reached: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)

    def line(self) -> str:
        """One line for the reader of the test run."""
        reached = ", ".join(
            f"{name} {count}"
            for name, count in sorted(self.reached.items(), key=lambda item: -item[1])
        )
        refusals = ", ".join(f"{name} {count}" for name, count in self.refusals.most_common())
        head = f"model: {self.sequences} sequences ({self.full} of full length), {self.steps} steps"
        head = f"{head}, {self.requests} requests"
        return f"{head}; sequences that reached: {reached}; refusals as predicted: {refusals}"


class Bench:
    """Asks the server, tells the model, and compares."""

    def __init__(self, client: Client, tally: Tally) -> None:
        """An empty sandbox with the clock standing still."""
        self.client = client
        self.tally = tally
        self.serial = 0
        self.moves = 0
        self.touched: Project | None = None
        self.gone: list[str] = []
        self.marks: set[str] = set()
        self.hooks: dict[str, str | None] = {}
        reset = client.ask("POST", "/_sandbox/reset", {"scenario": "empty"}).hold(granted())
        client.token = client.ask("POST", "/_sandbox/tokens", {}).hold(granted(201)).body["token"]
        self.world = World(parse(reset.body["now"]))
        self.strangers = {
            plural: {record["id"] for record in self.listed(plural)}
            for plural in (
                "customers",
                "projects",
                "plans",
                "products",
                "orders",
                "subscriptions",
                "api_keys",
            )
        }
        self.past_events = self.client.get("/_sandbox/events", limit=1).body["pagination"]["total"]

    def listen(self, url: str, project: Project | None) -> None:
        """Register a webhook for new customers, of one project or of all."""
        owner = None if project is None else project.id
        body: Json = {"url": url, "events": ["customer.created"], "projectId": owner}
        shown = self.client.ask("POST", "/v2/webhooks", body).hold(granted(201)).body["webhook"]
        self.hooks[shown["id"]] = owner

    def name(self, kind: str) -> str:
        """A name that nothing else has."""
        self.serial += 1
        return f"{kind} {self.serial}"

    def hold(self, reply: Reply, verdict: Any) -> Reply:
        """Hold an answer to the model's verdict, and count what was refused."""
        reply.hold(verdict)
        if not reply.granted:
            self.tally.refusals[reply.body["code"]] += 1
        return reply

    def warned(self, reply: Reply, expected: set[str]) -> None:
        """What was accepted is warned of, by the names that the model knows."""
        said = {name.strip() for name in reply.headers.get("X-Sandbox-Warnings", "").split(",")}
        agree(f"warnings of {reply.asked}", expected, said & WARNINGS)

    def settle(self) -> None:
        """Let the model do what is overdue, and find in the API what the clock has made."""
        clock.advance(self.world, self.world.now)
        self.bind()

    def advance(self, to: int) -> None:
        """Move both clocks."""
        self.moves += 1
        way = ways_ahead(self.world.now, to)[self.moves % 4]
        reply = self.client.ask("POST", "/_sandbox/clock/advance", way).hold(granted())
        clock.advance(self.world, to)
        agree("clock", self.world.now, parse(reply.body["now"]))
        self.bind()

    def listed(self, plural: str, limit: int = 100, **query: object) -> list[Json]:
        """Every record of a kind."""
        path = "/api-keys" if plural == "api_keys" else f"/v2/{plural}"
        return self.client.pages(
            path, plural, "data" if plural == "projects" else "", limit, **query
        )

    def inspect(self, order_id: str) -> Json:
        """An order with what the API hides."""
        return self.client.get(f"/_sandbox/orders/{order_id}").hold(granted()).body

    def bind(self) -> None:
        """Give the model's new subscriptions and renewal orders the ids they have in the API."""
        self._bind_subscriptions()
        nameless = [order for order in self.world.orders if order.id is None]
        if not nameless:
            return
        known = {order.id for order in self.world.orders} | self.strangers["orders"]
        fresh = [shown for shown in self.listed("orders") if shown["id"] not in known]
        agree("new orders", len(nameless), len(fresh))
        hidden = [
            (self.inspect(shown["id"])["subscriptionId"], shown["createdAt"], shown["id"])
            for shown in fresh
        ]
        for order in nameless:
            place = (order.renews and order.renews.id, iso(order.created))
            mine = [entry for entry in hidden if entry[:2] == place]
            if not mine:
                raise Disagreement(f"no renewal order {order.view()} of {place}: {hidden}")
            hidden.remove(mine[0])
            order.id = mine[0][2]
        self._bind_subscriptions()

    def _bind_subscriptions(self) -> None:
        for found in self.world.subscriptions:
            if found.id is None and found.first.id is not None:
                found.id = self.inspect(found.first.id)["subscriptionId"]

    def compare_order(self, order: Order, shown: Json) -> None:
        """An order as the API shows it."""
        agree(f"order {order.id}", order.view(), shown)
        agree(f"payment of order {order.id}", order.payment_view(), shown["last_transaction"])
        if (
            order.status == "failed"
            and shown["last_transaction"]["failure_code"] not in FAILURES[order.method]
        ):
            raise Disagreement(f"failure of a {order.method} order: {shown}")
        if (order.method == "pix") != ("qr_code" in shown["last_transaction"]):
            raise Disagreement(f"QR code of a {order.method} order: {shown}")
        if (order.paid is not None and order.method == "pix") != (
            "end_to_end_id" in shown["last_transaction"]
        ):
            raise Disagreement(f"end_to_end_id of a {order.status} order: {shown}")

    def compare_project(self, project: Project) -> None:
        """A project with its counters, and its statistics."""
        shown = (
            self.client.get(f"/v2/projects/{project.id}").hold(granted()).body["data"]["project"]
        )
        agree(f"project {project.id}", project_view(self.world, project), shown)
        stats = (
            self.client.get(f"/v2/projects/{project.id}/stats")
            .hold(granted())
            .body["data"]["stats"]
        )
        agree(f"stats of {project.id}", stats_view(self.world, project), stats)
        agree(f"net of {project.id}", shown["total_revenue"], stats["revenue"]["net"])
        rate = conversion(self.world, project)
        agree(
            f"conversion of {project.id}",
            None if rate is None else round(float(rate), 4),
            stats["conversion_rate"],
        )
        for name, expected, actual in (
            ("mrr", monthly(self.world, project), stats["mrr"]),
            ("average_ticket", ticket(self.world, project), stats["revenue"]["average_ticket"]),
        ):
            if abs(expected - Fraction(str(actual))) > HALF_A_CENT:
                raise Disagreement(
                    f"{name} of {project.id}: model {float(expected)}, server {actual}"
                )
        best = [entry["revenue"] for entry in stats["top_plans"]]
        agree(f"top plans of {project.id} go down", sorted(best, reverse=True), best)

    def compare_plan(self, plan: Plan, shown: Json) -> None:
        """A plan with its counter."""
        agree(f"plan {plan.id}", plan_view(self.world, plan), shown)
        agree(f"methods of plan {plan.id}", sorted(plan.methods), sorted(shown["payment_methods"]))

    def compare_subscription(self, found: Subscription, shown: Json) -> None:
        """A subscription; by which of its names it knows a plan that was deleted, no rule says."""
        expected = periods.view(found, self.world.now)
        if found.plan not in self.world.plans:
            expected["plan"] = {"id": found.plan.id}
        agree(f"subscription {found.id}", expected, shown)

    def mark(self, *names: str) -> None:
        """Note that this sequence got somewhere."""
        self.marks.update(names)


def ways_ahead(now: int, to: int) -> tuple[Json, ...]:
    """The same move of the clock in each of the forms that `advance` takes."""
    ahead = to - now
    days, of_day = divmod(ahead, DAY)
    hours, of_hour = divmod(ahead, HOUR)
    minutes, rest = divmod(of_hour, MINUTE)
    return (
        {"to": iso(to)},
        {"seconds": ahead / 1000},
        {"days": days, "seconds": of_day / 1000},
        {"hours": hours, "minutes": minutes, "seconds": rest / 1000},
    )


def pick(items: Sequence[Item], number: int) -> Item | None:
    """One of the items, the newest for 0."""
    return items[-1 - number % len(items)] if items else None
