"""The past of a new sandbox while it is planned: what the scenario names, and what is sold."""

from collections import defaultdict
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

SCHEMAS = {"projects": "Project", "plans": "Plan", "products": "Product", "customers": "Customer"}


class Past(Script):
    """The script from the merchant's first day, `begun` (ms), to now; sales begin at `start`.

    `planned` are records by table and id, customers by document; `offers` are the plans that the
    crowd buys, and `in_use` the ids and documents that records have. `foreseen` is about how many
    orders come of those whom the scenario names. A node is the place in the file that an error
    names. Methods raise ScenarioError.
    """

    def __init__(
        self, sandbox: Sandbox, store: Store, scenario: Scenario, begun: int, start: int
    ) -> None:
        self.scenario, self.begun, self.seed = scenario, begun, sandbox.origin.seed
        super().__init__(sandbox, store, begun, sandbox.clock.now, self.stream("lives"))
        self.rhythm, self.rules = Rhythm(start, self.end), sandbox.rules
        self.planned: dict[str, dict[str, Body]] = defaultdict(dict)
        self.in_use: set[str] = set()
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

    def create(self, table: str, node: Node, ident: str, fields: Body, at: int) -> Body:
        """Plan a record, which the engine creates at an instant."""
        self.claim(ident, node, f"{SCHEMAS[table].lower()} has this name, key or id")
        row = self.rules.new(table, ident, at)
        change: Action = resources.add
        match table:
            case "projects":
                row = new_project(row, fields, self.store.merchant.user_id)
                change = Draft.move
            case "plans":
                row = new_plan(row, fields)
            case "products":
                row = new_product(row, fields)
                sold = self.planned["plans"].values()
                known = {plan["id"] for plan in sold if plan["projectId"] == row["projectId"]}
                plans = known_ids("planIds", "plan", row["planIds"], known.__contains__)
                row = row.changed({"planIds": plans})
            case "customers":
                row = changed_customer(row, fields)
                self.claim(row["document"], node, "customer has this document")
        self.planned[table][row.public.get("document", ident)] = row.public
        self.add(at, self.checked, node, self.step, change, row)
        return row.public
