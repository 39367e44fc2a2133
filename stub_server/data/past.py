"""The past of a new sandbox while it is planned: what the scenario names, and what is sold."""

from random import Random
from typing import Any

from faker import Faker

from ..core.problem import Refusal
from ..core.record import Body
from ..domain.customers import changed_customer
from ..domain.lifecycle import known_ids
from ..domain.projects import new_plan, new_product, new_project
from ..engine import resources
from ..engine.draft import Draft
from ..engine.sandbox import Sandbox
from ..engine.tables.specs import UniqueViolation
from ..engine.tables.store import Store
from .provider import new_faker, stream
from .purchases import Offer
from .rhythm import Rhythm
from .scenario import Node, Scenario
from .script import Action, Script


class Past(Script):
    """The script from the merchant's first day, `begun` (ms), to now; sales begin at `start`.

    `in_use` are the ids and documents that records have; `projects` and `plans` are by id,
    `customers` by document, and `offers` are the plans that the crowd buys. `foreseen` is about how
    many orders come of those whom the scenario names. What the scenario names is created by the
    engine's rules at its time. A node is the place in the file that an error names. Methods raise
    ScenarioError.
    """

    def __init__(
        self, sandbox: Sandbox, store: Store, scenario: Scenario, begun: int, start: int
    ) -> None:
        self.scenario, self.begun, self.seed = scenario, begun, sandbox.origin.seed
        super().__init__(sandbox, store, begun, sandbox.clock.now, self.stream("lives"))
        self.rhythm, self.rules = Rhythm(start, self.end), sandbox.rules
        self.in_use: set[str] = set()
        self.projects: dict[str, Body] = {}
        self.plans: dict[str, Body] = {}
        self.customers: dict[str, Body] = {}
        self.offers: list[Offer] = []
        self.foreseen = 0

    def stream(self, *subject: str) -> Random:
        """The random stream of a subject."""
        return stream(self.seed, *subject)

    def faker(self, *subject: str) -> Faker:
        """A Faker whose stream is that of a subject."""
        return new_faker(self.seed, *subject)

    def claim(self, name: str, node: Node, what: str) -> None:
        """Use an id or document that only one record can have."""
        if name in self.in_use:
            raise node.fail(f"another {what}")
        self.in_use.add(name)

    def checked(self, node: Node, action: Action, *args: Any) -> None:
        """Call an action; what the rules refuse is an error of the file."""
        try:
            action(*args)
        except Refusal as refusal:
            raise node.fail(refusal.message) from None
        except UniqueViolation as clash:
            raise node.fail(str(clash)) from None

    def later(self, at: int, node: Node, change: Action, *args: Any) -> None:
        """Plan a step at an instant."""
        self.add(at, self.checked, node, self.step, change, *args)

    def add_project(self, node: Node, ident: str, fields: Body, at: int) -> Body:
        """Plan a project."""
        blank = self.rules.new("projects", ident, at)
        project = new_project(blank, fields, self.store.merchant.user_id)
        self.later(at, node, Draft.move, project)
        self.projects[ident] = project.public
        return project.public

    def add_plan(self, node: Node, ident: str, fields: Body, at: int) -> Body:
        """Plan a plan."""
        plan = new_plan(self.rules.new("plans", ident, at), fields)
        self.later(at, node, resources.add, plan)
        self.plans[ident] = plan.public
        return plan.public

    def add_product(self, node: Node, ident: str, fields: Body, at: int) -> None:
        """Plan a product, whose plans are of its project."""
        product, plans = new_product(self.rules.new("products", ident, at), fields), self.plans
        of_project = {plan for plan in plans if plans[plan]["projectId"] == product["projectId"]}
        known = known_ids("planIds", "plan", product["planIds"], of_project.__contains__)
        self.later(at, node, resources.add, product.changed({"planIds": known}))

    def add_customer(self, node: Node, ident: str, fields: Body, at: int) -> Body:
        """Plan a customer."""
        customer = changed_customer(self.rules.new("customers", ident, at), fields)
        self.claim(customer["document"], node, "customer has this document")
        self.customers[customer["document"]] = customer.public
        self.later(at, node, resources.add, customer)
        return customer.public
