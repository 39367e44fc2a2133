"""What the sandbox ought to remember: a small model of its records, written from the rules and from nothing else."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .moments import iso

Json = dict[str, Any]
RUNNING = ("trialing", "active", "past_due")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a request must be answered. Where several conflicts hold at once, any of their codes will do."""

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
        return {"id": self.id, "projectId": self.project.id, "name": self.name, "sku": self.sku, "status": self.status}


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

    def view(self) -> Json:
        """What the API must show of it."""
        return {
            "id": self.id,
            "scopes": sorted(self.scopes),
            "expires_at": None if self.expires is None else iso(self.expires),
            "is_active": self.active,
            "allowed_projects": ",".join(project.id for project in self.projects),
            "usage_count": self.uses,
        }


@dataclass(slots=True, eq=False)
class Subscription:
    """A membership that a paid order opened. Its `periods` paid ones are counted from `anchor`."""

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
    trial_start: int | None = None
    id: str | None = None
    periods: int = 1
    cycle: int = 0
    ends: bool = False
    ended: int | None = None
    renewal: "Order | None" = None
    renewal_done: bool = False

    @property
    def running(self) -> bool:
        """Whether it is in no final state."""
        return self.status in RUNNING


@dataclass(slots=True, eq=False)
class Order:
    """A purchase; money in cents, times in ms. An id is None until the order has been found in the API."""

    id: str | None
    project: Project
    plan: Plan
    customer: Customer
    document: str
    email: str
    method: str
    total: int
    created: int
    expires: int | None
    status: str = "pending"
    payment: str = "waiting_payment"
    updated: int = 0
    paid: int | None = None
    refunded: int = 0
    magic: str | None = None
    renews: Subscription | None = None
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
            "createdAt": iso(self.created),
            "updatedAt": iso(self.updated),
        }

    def payment_view(self) -> Json:
        """What `last_transaction` must show."""
        shown: Json = {"status": self.payment, "amount": f"{self.total / 100:.2f}", "currency": "BRL"}
        if self.expires is not None:
            shown["expires_at"] = iso(self.expires)
        if self.paid is not None:
            shown["paid_at"] = iso(self.paid)
        if self.refunded:
            shown["refunded_amount"] = f"{self.refunded / 100:.2f}"
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

    def emit(self, *types: str) -> None:
        """Note that events must have happened."""
        self.events.update(types)

    def subscriptions_of(self, plan: Plan) -> list[Subscription]:
        """Those of a plan that are in no final state."""
        return [found for found in self.subscriptions if found.plan is plan and found.running]

    def orders_of(self, project: Project) -> list[Order]:
        """Every order of a project."""
        return [order for order in self.orders if order.project is project]

    def customer_with(self, document: str) -> Customer | None:
        """The customer with a document."""
        return next((found for found in self.customers if found.document == document), None)
