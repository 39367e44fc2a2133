"""Plans records of what is for sale, those of the catalogue and those that a scenario
names alike.
"""

from typing import Any

from ..core.clock import iso
from ..core.problem import Refusal
from ..core.record import Body
from ..domain.lifecycle import path
from ..domain.projects import changed_plan, new_plan, new_product, new_project
from ..engine import resources
from ..engine.draft import Draft
from ..engine.tables.specs import UniqueViolation
from .scenario import Node
from .script import Action, Script


class Goods:
    """Plans projects, plans and products, each created by the engine's rules at its time.

    `in_use` are the ids and documents that records have; `projects` and `plans` are by id. A node
    is the place in the file that an error names.
    Methods raise ScenarioError.
    """

    def __init__(self, script: Script) -> None:
        rules = script.sandbox.rules
        self.script, self.defaults = script, rules.defaults
        self.schemas = rules.schemas
        self.in_use: set[str] = set()
        self.projects: dict[str, Body] = {}
        self.plans: dict[str, Body] = {}

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
        self.script.add(at, self.checked, node, self.script.step, change, *args)

    def add_project(self, node: Node, ident: str, fields: Body, at: int) -> Body:
        """Plan a project."""
        user = self.script.store.merchant.user_id
        public, hidden = new_project(fields, self.defaults["Project"], ident, user, iso(at))
        self.later(at, node, resources.add_project, public, hidden)
        self.projects[ident] = public
        return public

    def add_plan(self, node: Node, ident: str, fields: Body, at: int) -> Body:
        """Plan a plan."""
        public = new_plan(fields, self.defaults["Plan"], iso(at)) | {"id": ident}
        self.later(at, node, resources.add, "plans", public)
        self.plans[ident] = public
        return public

    def add_product(self, node: Node, ident: str, fields: Body, at: int) -> None:
        """Plan a product."""
        public = new_product(fields, self.defaults["Product"], iso(at)) | {"id": ident}
        self.later(at, node, resources.add, "products", public)


def move_project(draft: Draft, ident: str, to: str) -> None:
    """Move a project to a status, by the shortest way that the contract knows."""
    row, moves = draft.get(draft.store.projects, ident), draft.lifecycle("Project")
    for status in path(moves, row.public["status"], to)[1:]:
        moved = moves.find(row.public["status"], status)
        assert moved is not None  # a step of the way
        resources.move_project(draft, row, moved)
        row = draft.get(draft.store.projects, ident)


def withdraw_plan(draft: Draft, ident: str) -> None:
    """A plan is not sold any more; who has it keeps it."""
    row = draft.get(draft.store.plans, ident)
    running = draft.store.running("planId", ident)
    changed = changed_plan(row.public, {"status": "inactive"}, running, iso(draft.now))
    resources.change(draft, draft.store.plans, row, changed)
