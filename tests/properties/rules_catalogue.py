"""What a sequence may do to projects, plans, products and customers."""

from hypothesis import strategies as st
from hypothesis.stateful import rule

from . import model_catalogue as catalogue
from .bench import DOCUMENTS, UNKNOWN, Bench, pick
from .client import agree
from .model import Customer, Json, Plan, Product, Project, members, refused
from .rules_sales import masked

NUMBER = st.integers(0, 5)
NAMES = ("Clube", "Academia", "CLUBE", "Escola")
SHAPES: tuple[Json, ...] = (
    {},
    {"interval": "day", "interval_count": 2, "payment_methods": ["pix", "boleto"]},
    {"interval": "week"},
    {"interval": "month", "interval_count": 3, "payment_methods": ["credit_card", "pix"]},
    {"interval": "year"},
    {"trial_period_days": 7},
    {"interval": "day", "trial_period_days": 1},
    {"billing_type": "one_time", "trial_period_days": 3},
    {"billing_type": "one_time", "max_subscribers": 1},
    {"max_subscribers": 1, "interval": "week"},
    {"payment_methods": ["credit_card", "boleto"]},
    {"status": "inactive"},
)


def new_plan(bench: Bench, project: Project, name: str, cents: int, shape: Json) -> None:
    """createPlan, granted or refused."""
    body = {"projectId": project.id, "name": name, "amount": cents / 100} | shape
    verdict = catalogue.may_create_plan(
        bench.world, project if project in bench.world.projects else None, name
    )
    reply = bench.hold(bench.client.ask("POST", "/v2/plans", body), verdict)
    if not reply.granted:
        return
    shown = reply.body["plan"]
    once = shape.get("billing_type") == "one_time"
    plan = Plan(shown["id"], project, name, cents, None, None)
    if not once:
        plan.unit = shape.get("interval", "month")
        plan.count = shape.get("interval_count", 1)
        plan.trial_days = shape.get("trial_period_days", 0)
    bench.warned(reply, {"trial_ignored"} if once and "trial_period_days" in shape else set())
    plan.methods = tuple(shape.get("payment_methods", ("pix",)))
    plan.limit = shape.get("max_subscribers")
    plan.status = shape.get("status", "active")
    bench.world.plans.append(plan)
    bench.world.emit("plan.created")
    bench.compare_plan(plan, shown)


def new_project(bench: Bench, name: str, status: str) -> None:
    """createProject, granted or refused."""
    verdict = catalogue.may_create_project(bench.world, name)
    reply = bench.hold(
        bench.client.ask("POST", "/v2/projects", {"name": name, "status": status}), verdict
    )
    if reply.granted:
        project = Project(reply.body["data"]["project"]["id"], name, status)
        bench.world.projects.append(project)
        bench.world.emit("project.created")
        bench.touched = project


class CatalogueRules:
    """Mixed into the machine."""

    bench: Bench

    @rule(
        name=st.sampled_from(NAMES),
        fresh=st.booleans(),
        status=st.sampled_from(("active", "active", "draft")),
    )
    def create_project(self, name: str, fresh: bool, status: str) -> None:
        """A name that may be taken."""
        new_project(self.bench, self.bench.name(name) if fresh else name, status)

    @rule(
        number=NUMBER,
        verb=st.sampled_from(
            ("suspend", "activate", "suspend", "activate", "patch", "put", "put", "archive")
        ),
        to=st.sampled_from(("active", "suspended", "draft", "archived")),
        rename=st.sampled_from((None, None, *NAMES)),
    )
    def move_project(self, number: int, verb: str, to: str, rename: str | None) -> None:
        """Each of the ways to a state, also where there is none; a PUT may change
        fields beside it.
        """
        bench = self.bench
        project = pick(self.bench.world.projects, number)
        if project is None:
            return
        path = f"/v2/projects/{project.id}"
        to = {"activate": "active", "suspend": "suspended", "archive": "archived"}.get(verb, to)
        body: Json = {"status": to}
        if verb == "put":
            body |= {} if rename is None else {"name": rename, "description": bench.name("Sobre")}
            verdict = catalogue.may_update_project(bench.world, project, body)
            reply = bench.client.ask("PUT", path, body)
        else:
            verdict = catalogue.may_move(project, to)
            patch = verb == "patch"
            reply = bench.client.ask(
                "PATCH" if patch else "POST",
                f"{path}/{'status' if patch else verb}",
                body if patch else None,
            )
        bench.hold(reply, verdict)
        bench.touched = project
        if reply.granted:
            catalogue.update_project(bench.world, project, body)
            agree("state", project.status, reply.body["data"]["project"]["status"])
            bench.settle()

    @rule(number=st.integers(0, 9), kind=st.sampled_from(("plan", "project")))
    def delete(self, number: int, kind: str) -> None:
        """Only what nobody uses can go."""
        if kind == "plan":
            self._delete_plan(number)
        else:
            self._delete_project(number)

    def _delete_project(self, number: int) -> None:
        project = pick(self.bench.world.projects, number)
        if project is None:
            return
        verdict = catalogue.may_delete_project(self.bench.world, project)
        reply = self.bench.hold(
            self.bench.client.ask("DELETE", f"/v2/projects/{project.id}"), verdict
        )
        if reply.granted:
            plans = [
                f"/v2/plans/{plan.id}" for plan in self.bench.world.plans if plan.project is project
            ]
            self.bench.gone += [f"/v2/projects/{project.id}", *plans]
            catalogue.delete_project(self.bench.world, project)
            self.bench.touched = None
            self.bench.mark("project deleted")

    @rule(
        number=NUMBER,
        fresh=st.booleans(),
        cents=st.integers(1, 99_999_999),
        shape=st.sampled_from(SHAPES),
    )
    def create_plan(self, number: int, fresh: bool, cents: int, shape: Json) -> None:
        """Every rhythm."""
        project = pick(self.bench.world.projects, number) or Project(UNKNOWN, "", "active")
        new_plan(self.bench, project, self.bench.name("Plano") if fresh else "Mensal", cents, shape)

    @rule(
        number=NUMBER,
        change=st.sampled_from(
            (
                {"name": "MENSAL"},
                {"status": "inactive"},
                {"status": "active"},
                {"amount": 59.9},
                {"interval": "week", "billing_type": "recurring", "interval_count": 1},
                {"billing_type": "one_time"},
                {"trial_period_days": 2},
                {"max_subscribers": 1},
                {"max_subscribers": None},
                {"payment_methods": ["pix", "credit_card", "boleto"]},
            )
        ),
    )
    def update_plan(self, number: int, change: Json) -> None:
        """What may change under members, and what may not."""
        plan = pick(self.bench.world.plans, number)
        if plan is None:
            return
        verdict = catalogue.may_update_plan(self.bench.world, plan, change)
        reply = self.bench.hold(
            self.bench.client.ask("PUT", f"/v2/plans/{plan.id}", change), verdict
        )
        if reply.granted:
            catalogue.update_plan(self.bench.world, plan, change)
            if "trial_period_days" in change:
                self.bench.warned(reply, set() if plan.recurring else {"trial_ignored"})
            self.bench.compare_plan(plan, reply.body["plan"])

    def _delete_plan(self, number: int) -> None:
        plan = pick(self.bench.world.plans, number)
        if plan is None:
            return
        verdict = catalogue.may_delete_plan(self.bench.world, plan)
        reply = self.bench.hold(self.bench.client.ask("DELETE", f"/v2/plans/{plan.id}"), verdict)
        if reply.granted:
            self.bench.world.plans.remove(plan)
            self.bench.world.emit("plan.deleted")
            self.bench.gone.append(f"/v2/plans/{plan.id}")
            self.bench.touched = plan.project

    @rule(
        number=NUMBER,
        sku=st.sampled_from((None, "A-1", "A-2")),
        plan=st.none() | NUMBER,
        change=st.sampled_from((None, None, "archived", "active", "A-1", "A-2", "delete")),
    )
    def write_product(
        self, number: int, sku: str | None, plan: int | None, change: str | None
    ) -> None:
        """A new one, or a change to one; a SKU that may be taken, a plan that may be of
        another project.
        """
        if change is None or not self.bench.world.products:
            self._create_product(number, sku, plan)
        else:
            self._change_product(number, change)

    def _create_product(self, number: int, sku: str | None, plan: int | None) -> None:
        project = pick(self.bench.world.projects, number)
        found = None if plan is None else pick(self.bench.world.plans, plan)
        plans = [] if found is None else [found]
        body: Json = {
            "projectId": project.id if project else UNKNOWN,
            "name": self.bench.name("Curso"),
            "sku": sku,
            "planIds": [item.id for item in plans],
        }
        verdict = catalogue.may_write_product(self.bench.world, project, sku, [*plans])
        reply = self.bench.hold(self.bench.client.ask("POST", "/v2/products", body), verdict)
        if reply.granted and project is not None:
            product = Product(reply.body["product"]["id"], project, body["name"], sku)
            self.bench.world.products.append(product)
            self.bench.world.emit("product.created")
            agree("product", product.view(), reply.body["product"])

    def _change_product(self, number: int, change: str) -> None:
        product = pick(self.bench.world.products, number)
        assert product is not None
        path = f"/v2/products/{product.id}"
        sku = change if change.startswith("A-") else None
        verdict = catalogue.may_write_product(self.bench.world, product.project, sku, [], product)
        if change == "delete":
            reply = self.bench.hold(self.bench.client.ask("DELETE", path), verdict)
            if reply.granted:
                self.bench.world.products.remove(product)
                self.bench.world.emit("product.deleted")
                self.bench.gone.append(path)
            return
        body = {"sku": sku} if sku else {"status": change}
        reply = self.bench.hold(self.bench.client.ask("PUT", path, body), verdict)
        if reply.granted:
            before = members(product)
            product.sku, product.status = (sku, product.status) if sku else (product.sku, change)
            if members(product) != before:
                self.bench.world.emit("product.updated")

    @rule(number=st.none() | NUMBER, document=st.sampled_from(DOCUMENTS), detail=st.integers(0, 5))
    def write_customer(self, number: int | None, document: str, detail: int) -> None:
        """A new one or a change to one, with a document that may be taken."""
        if number is None:
            self._create_customer(document, bool(detail % 2))
        else:
            self._update_customer(number, document if detail % 2 else None, not detail)

    def _create_customer(self, document: str, odd: bool) -> None:
        sent = masked(document) if odd else document
        name = self.bench.name("Cliente")
        body = {"name": name, "email": f"{name.replace(' ', '.')}@Example.com", "document": sent}
        verdict = catalogue.may_take_document(self.bench.world, document)
        reply = self.bench.hold(self.bench.client.ask("POST", "/v2/customers", body), verdict)
        if reply.granted:
            customer = Customer(reply.body["customer"]["id"], name, body["email"].lower(), document)
            self.bench.world.customers.append(customer)
            self.bench.world.emit("customer.created")
            agree("customer", customer.view(), reply.body["customer"])

    def _update_customer(self, number: int, document: str | None, wrong: bool) -> None:
        customer = pick(self.bench.world.customers, number)
        if customer is None:
            self.bench.hold(
                self.bench.client.ask("PUT", f"/v2/customers/{UNKNOWN}", {"name": "Ana"}),
                refused(404, "not_found"),
            )
            return
        body: Json = {"name": self.bench.name("Cliente")} | (
            {"document": document} if document else {}
        )
        verdict = catalogue.may_take_document(
            self.bench.world, document or customer.document, customer
        )
        if wrong:
            body["document_type"] = "cnpj"
            verdict = refused(409, "document_type_conflict", *verdict.codes)
        reply = self.bench.hold(
            self.bench.client.ask("PUT", f"/v2/customers/{customer.id}", body), verdict
        )
        if reply.granted:
            catalogue.update_customer(self.bench.world, customer, body)
            agree("customer", customer.view(), reply.body["customer"])
