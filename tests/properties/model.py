"""What the sandbox ought to remember: a small model of its records, written from the rules and from
nothing else.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from .moments import iso

Json = dict[str, Any]
RUNNING = ("trialing", "active", "past_due")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a request must be answered.

    Where several conflicts hold at once, any of their codes will do.
    """

    status: int
    codes: frozenset[str] = frozenset()

    @property
    def granted(self) -> bool:
        """Whether the request takes effect."""
        return self.status < 400


def granted(status: int = 200) -> Verdict:
    """It is done."""
    return Verdict(status)


def refused(status: int, *codes: str) -> Verdict:
    """It is refused."""
    return Verdict(status, frozenset(codes))


def unless(conflicts: Iterable[str], status: int = 200) -> Verdict:
    """409 with one of the codes, or a success when there is none."""
    codes = frozenset(conflicts)
    return Verdict(409, codes) if codes else Verdict(status)


def members(record: Any) -> list[Any]:
    """What a record says, to see whether an update changed it: one that changes nothing
    raises no event.
    """
    return [getattr(record, each.name) for each in fields(record)]


@dataclass(slots=True, eq=False)
class Customer:
    """A buyer, one per document."""

    id: str | None
    name: str
    email: str
    document: str

    def view(self) -> Json:
        """What the API must show of it."""
        shown = {"id": self.id, "name": self.name, "email": self.email, "document": self.document}
        return shown | {"document_type": "cpf", "type": "individual"}


@dataclass(slots=True, eq=False)
class Project:
    """A membership."""

    id: str
    name: str
    status: str
    description: str | None = None
    suspended: int | None = None
    """When it was suspended, which is where the clock of its subscriptions stands."""


@dataclass(slots=True, eq=False)
class Plan:
    """What a project sells; `amount` in cents, `count` intervals of `unit` per period."""

    id: str
    project: Project
    name: str
    amount: int
    unit: str | None
    count: int | None
    trial_days: int = 0
    methods: tuple[str, ...] = ("pix",)
    limit: int | None = None
    status: str = "active"

    @property
    def recurring(self) -> bool:
        """Whether its orders open subscriptions."""
        return self.unit is not None


@dataclass(slots=True, eq=False)
class Product:
    """What a membership unlocks."""

    id: str
    project: Project
    name: str
    sku: str | None
    status: str = "active"

    def view(self) -> Json:
        """What the API must show of it."""
        return {
            "id": self.id,
            "projectId": self.project.id,
            "name": self.name,
            "sku": self.sku,
            "status": self.status,
        }


@dataclass(slots=True, eq=False)
class Key:
    """An API key; `expires` in ms."""

    id: str
    secret: str
    scopes: tuple[str, ...]
    projects: tuple[Project, ...]
    expires: int | None
    active: bool = True
    uses: int = 0

    def over(self, now: int) -> bool:
        """Whether its life has ended."""
        return self.expires is not None and self.expires <= now

    def view(self, now: int) -> Json:
        """What the API must show of it; one born expired is not active."""
        return {
            "id": self.id,
            "scopes": sorted(self.scopes),
            "expires_at": None if self.expires is None else iso(self.expires),
            "is_active": self.active and not self.over(now),
            "allowed_projects": ",".join(project.id for project in self.projects),
            "usage_count": self.uses,
        }


@dataclass(slots=True, eq=False)
class Subscription:
    """A membership that a paid order opened.

    Its periods form a grid of `count` units from `anchor` on; `paid` holds the order that paid
    each, oldest first.
    """

    plan: Plan
    customer: Customer
    first: "Order"
    last: "Order"
    amount: int
    unit: str
    count: int
    method: str
    status: str
    anchor: int
    created: int
    paid: list["Order"]
    trial: tuple[int, int] | None = None
    id: str | None = None
    cycle: int = 0
    ends: bool = False
    ended: int | None = None
    renewal: "Order | None" = None
    billed: int | None = None
    """The end of the period after which a bill was made last: time makes one for each end."""
    tried: set[int] = field(default_factory=set)
    """After how many days its declined card was charged again, or would have been."""
    planned: int = 0
    """When what is due next was set; of what is due at one instant, what was set first is
    done first.
    """
    moved: list[int] = field(default_factory=list)
    """The boundaries of its periods as a suspension or a dispute has left them; the grid goes on
    from the last.
    """
    disputed: list["Order"] = field(default_factory=list)
    held: int | None = None
    """Since when an order of it is disputed."""

    @property
    def running(self) -> bool:
        """Whether it is in no final state."""
        return self.status in RUNNING

    @property
    def stopped(self) -> bool:
        """Whether its clock stands still with its project."""
        return self.plan.project.status == "suspended"

    @property
    def waits(self) -> bool:
        """Whether it is neither billed nor past due now."""
        return self.stopped or bool(self.disputed)


@dataclass(frozen=True, slots=True)
class Buyer:
    """Who an order is addressed to, as the order keeps it: without mask and in small letters."""

    name: str
    email: str
    document: str
    zip_code: str | None = None

    def view(self) -> Json:
        """What the API must show of the buyer."""
        shown: Json = {"name": self.name, "email": self.email, "document": self.document}
        shown |= {"document_type": "cpf", "type": "individual"}
        return shown if self.zip_code is None else shown | {"address": {"zip_code": self.zip_code}}


@dataclass(slots=True, eq=False)
class Order:
    """A purchase; money in cents, times in ms.

    An id is None until the order has been found in the API.
    """

    id: str | None
    project: Project
    plan: Plan
    customer: Customer
    buyer: Buyer
    method: str
    total: int
    created: int
    expires: int
    status: str = "pending"
    due: int | None = None
    """When a boleto is due."""
    payment: str = "waiting_payment"
    updated: int = 0
    paid: int | None = None
    refunded: int = 0
    magic: str | None = None
    failure: str | None = None
    disputed: int | None = None
    """How much was disputed last."""
    spared: bool = False
    """Whether it was disputed when a magic address would have taken the money back, which
    it does once.
    """
    renews: Subscription | None = None
    """The subscription whose bill this is; a buyer's own order has none, whatever it pays."""
    subscription: Subscription | None = None

    @property
    def earned(self) -> int:
        """What was paid and not returned."""
        return 0 if self.paid is None else self.total - self.refunded

    def view(self) -> Json:
        """What the API must show of it; the payment stands apart."""
        return {
            "id": self.id,
            "status": self.status,
            "paymentMethod": self.method,
            "totalAmount": self.total / 100,
            "customer": self.buyer.view(),
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        }

    def payment_view(self) -> Json:
        """What `last_transaction` must show."""
        shown: Json = {
            "status": self.payment,
            "amount": f"{self.total / 100:.2f}",
            "currency": "BRL",
            "expires_at": iso(self.expires),
        }
        if self.due is not None:
            shown["due_at"] = iso(self.due)
        if self.paid is not None:
            shown["paid_at"] = iso(self.paid)
        if self.refunded:
            shown["refunded_amount"] = f"{self.refunded / 100:.2f}"
        if self.disputed is not None:
            shown["disputed_amount"] = f"{self.disputed / 100:.2f}"
        if self.failure is not None:
            shown["failure_code"] = self.failure
        return shown


@dataclass(slots=True)
class World:
    """Every record that must exist, every event that must have happened, and the time."""

    now: int
    customers: list[Customer] = field(default_factory=list)
    projects: list[Project] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    subscriptions: list[Subscription] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)
    events: Counter[str] = field(default_factory=Counter)
    newcomers: Counter[str] = field(default_factory=Counter)
    """How many customers each project's orders have made; a customer made alone belongs
    to no project.
    """
    reached: set[str] = field(default_factory=set)
    """The situations that this world has been in; for the reader of the test run."""

    def emit(self, *types: str) -> None:
        """Note that events must have happened."""
        self.events.update(types)

    def subscriptions_of(self, plan: Plan) -> list[Subscription]:
        """Those of a plan that are in no final state."""
        return [found for found in self.subscriptions if found.plan is plan and found.running]

    def subscription_of(self, plan: Plan, customer: Customer) -> Subscription | None:
        """The running one of a customer for a plan: there are never two."""
        return next(
            (found for found in self.subscriptions_of(plan) if found.customer is customer), None
        )

    def orders_of(self, project: Project) -> list[Order]:
        """Every order of a project."""
        return [order for order in self.orders if order.project is project]

    def customer_with(self, document: str) -> Customer | None:
        """The customer with a document."""
        return next((found for found in self.customers if found.document == document), None)
