"""What a sequence may do to projects, plans, products, customers and keys."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from . import model_catalogue as catalogue
from .bench import DOCUMENTS, UNKNOWN, Bench, pick
from .client import agree
from .model import Customer, Json, Key, Plan, Product, Project, granted, refused
from .moments import DAY, HOUR, iso

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
    {"billing_type": "one_time"},
    {"max_subscribers": 1, "interval": "week"},
    {"status": "inactive"},
)


def new_plan(bench: Bench, project: Project, name: str, cents: int, shape: Json) -> None:
    """createPlan, granted or refused."""
    body = {"projectId": project.id, "name": name, "amount": cents / 100} | shape
    verdict = catalogue.may_create_plan(bench.world, project if project in bench.world.projects else None, name)
    reply = bench.hold(bench.client.ask("POST", "/v2/plans", body), verdict)
    if not verdict.granted:
        return
    shown = reply.body["plan"]
    once = shape.get("billing_type") == "one_time"
    plan = Plan(shown["id"], project, name, cents, None, None, shape.get("trial_period_days", 0))
    if not once:
        plan.unit, plan.count = shape.get("interval", "month"), shape.get("interval_count", 1)
    plan.methods = tuple(shape.get("payment_methods", ("pix",)))
    plan.limit, plan.status = shape.get("max_subscribers"), shape.get("status", "active")
    bench.world.plans.append(plan)
    bench.world.emit("plan.created")
    bench.compare_plan(plan, shown)


def new_project(bench: Bench, name: str, status: str) -> None:
    """createProject, granted or refused."""
    verdict = catalogue.may_create_project(bench.world, name)
    reply = bench.hold(bench.client.ask("POST", "/v2/projects", {"name": name, "status": status}), verdict)
    if verdict.granted:
        project = Project(reply.body["data"]["project"]["id"], name, status)
        bench.world.projects.append(project)
        bench.world.emit("project.created")
        bench.touched = project


class CatalogueRules:
    """Mixed into the machine."""

    bench: Bench

    @rule(name=st.sampled_from(NAMES), fresh=st.booleans(), status=st.sampled_from(("active", "active", "draft")))
    def create_project(self, name: str, fresh: bool, status: str) -> None:
        """A name that may be taken."""
        new_project(self.bench, self.bench.name(name) if fresh else name, status)

    @rule(
        number=NUMBER,
        verb=st.sampled_from(("activate", "suspend", "activate", "suspend", "patch", "put", "archive")),
        to=st.sampled_from(("active", "suspended", "draft", "archived")),
    )
    def move_project(self, number: int, verb: str, to: str) -> None:
        """Each of the ways to a state, also where there is none."""
        project = pick(self.bench.world.projects, number)
        if project is None:
            return
        path = f"/v2/projects/{project.id}"
        if verb == "put":
            verdict = catalogue.may_update_project(self.bench.world, project, {"status": to})
            reply = self.bench.client.ask("PUT", path, {"status": to})
        else:
            to = {"activate": "active", "suspend": "suspended", "archive": "archived"}.get(verb, to)
            verdict = catalogue.may_move(project, to)
            request = ("PATCH", f"{path}/status", {"status": to}) if verb == "patch" else ("POST", f"{path}/{verb}", None)
            reply = self.bench.client.ask(*request)
        self.bench.hold(reply, verdict)
        self.bench.touched = project
        if verdict.granted:
            catalogue.move(self.bench.world, project, to)
            agree("state", project.status, reply.body["data"]["project"]["status"])
            self.bench.settle()

    @rule(number=NUMBER, rename=st.sampled_from((None, *NAMES)), status=st.sampled_from((None, "active", "suspended")))
    def update_project(self, number: int, rename: str | None, status: str | None) -> None:
        """Fields and state in one request."""
        project = pick(self.bench.world.projects, number)
        if project is None:
            return
        body: Json = {"description": self.bench.name("Sobre")}
        body |= {"name": rename} if rename else {}
        body |= {"status": status} if status else {}
        verdict = catalogue.may_update_project(self.bench.world, project, body)
        self.bench.hold(self.bench.client.ask("PUT", f"/v2/projects/{project.id}", body), verdict)
        self.bench.touched = project
        if verdict.granted:
            catalogue.update_project(self.bench.world, project, body)
            self.bench.settle()

    @rule(number=st.integers(0, 9))
    def delete_project(self, number: int) -> None:
        """Only what nobody uses can go."""
        project = pick(self.bench.world.projects, number)
        if project is None:
            return
        verdict = catalogue.may_delete_project(self.bench.world, project)
        self.bench.hold(self.bench.client.ask("DELETE", f"/v2/projects/{project.id}"), verdict)
        if verdict.granted:
            plans = [f"/v2/plans/{plan.id}" for plan in self.bench.world.plans if plan.project is project]
            self.bench.gone += [f"/v2/projects/{project.id}", *plans]
            catalogue.delete_project(self.bench.world, project)
            self.bench.touched = None
            self.bench.mark("project deleted")

    @rule(number=NUMBER, fresh=st.booleans(), cents=st.integers(1, 99_999_999), shape=st.sampled_from(SHAPES))
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
        reply = self.bench.hold(self.bench.client.ask("PUT", f"/v2/plans/{plan.id}", change), verdict)
        if verdict.granted:
            before = plan_state(plan)
            catalogue.update_plan(self.bench.world, plan, change)
            if plan_state(plan) == before:
                self.bench.world.events["plan.updated"] -= 1
                self.bench.world.events["plan.updated"] += 1
            self.bench.compare_plan(plan, reply.body["plan"])

    @rule(number=st.integers(0, 9))
    def delete_plan(self, number: int) -> None:
        """Only what nobody waits for or lives on."""
        plan = pick(self.bench.world.plans, number)
        if plan is None:
            return
        verdict = catalogue.may_delete_plan(self.bench.world, plan)
        self.bench.hold(self.bench.client.ask("DELETE", f"/v2/plans/{plan.id}"), verdict)
        if verdict.granted:
            self.bench.world.plans.remove(plan)
            self.bench.world.emit("plan.deleted")
            self.bench.gone.append(f"/v2/plans/{plan.id}")
            self.bench.touched = plan.project

    @rule(number=NUMBER, sku=st.sampled_from((None, "A-1", "A-2")), other=NUMBER, plan=NUMBER)
    def create_product(self, number: int, sku: str | None, other: int, plan: int) -> None:
        """A SKU that may be taken, a plan that may be of another project."""
        project = pick(self.bench.world.projects, number)
        plans = [found] if (found := pick(self.bench.world.plans, plan)) is not None and other else []
        body = {
            "projectId": project.id if project else UNKNOWN,
            "name": self.bench.name("Curso"),
            "sku": sku,
            "planIds": [found.id for found in plans],
        }
        verdict = catalogue.may_write_product(self.bench.world, project, sku, [*plans])
        reply = self.bench.hold(self.bench.client.ask("POST", "/v2/products", body), verdict)
        if verdict.granted and project is not None:
            product = Product(reply.body["product"]["id"], project, body["name"], sku)
            self.bench.world.products.append(product)
            self.bench.world.emit("product.created")
            agree("product", product.view(), reply.body["product"])

    @precondition(lambda self: self.bench.world.products)
    @rule(number=NUMBER, change=st.sampled_from(("archived", "active", "A-1", "A-2", "delete")))
    def change_product(self, number: int, change: str) -> None:
        """Update or delete."""
        product = pick(self.bench.world.products, number)
        assert product is not None
        path = f"/v2/products/{product.id}"
        sku = change if change.startswith("A-") else None
        verdict = catalogue.may_write_product(self.bench.world, product.project, sku, [], product)
        if change == "delete":
            self.bench.hold(self.bench.client.ask("DELETE", path), verdict)
            if verdict.granted:
                self.bench.world.products.remove(product)
                self.bench.world.emit("product.deleted")
                self.bench.gone.append(path)
            return
        body = {"sku": sku} if sku else {"status": change}
        self.bench.hold(self.bench.client.ask("PUT", path, body), verdict)
        if verdict.granted:
            product.sku, product.status = (sku, product.status) if sku else (product.sku, change)
            self.bench.world.emit("product.updated")

    @rule(document=st.sampled_from(DOCUMENTS), masked=st.booleans())
    def create_customer(self, document: str, masked: bool) -> None:
        """A document that may be taken, with or without its mask."""
        sent = f"{document[:3]}.{document[3:6]}.{document[6:9]}-{document[9:]}" if masked else document
        name = self.bench.name("Cliente")
        body = {"name": name, "email": f"{name.replace(' ', '.')}@Example.com", "document": sent}
        verdict = catalogue.may_take_document(self.bench.world, document)
        reply = self.bench.hold(self.bench.client.ask("POST", "/v2/customers", body), verdict)
        if verdict.granted:
            customer = Customer(reply.body["customer"]["id"], name, body["email"].lower(), document)
            self.bench.world.customers.append(customer)
            self.bench.world.emit("customer.created")
            agree("customer", customer.view(), reply.body["customer"])

    @rule(number=NUMBER, document=st.sampled_from((None, *DOCUMENTS)), wrong=st.integers(0, 7))
    def update_customer(self, number: int, document: str | None, wrong: int) -> None:
        """A new name, perhaps a document that is taken or contradicts its type."""
        customer = pick(self.bench.world.customers, number)
        if customer is None:
            self.bench.hold(
                self.bench.client.ask("PUT", f"/v2/customers/{UNKNOWN}", {"name": "Ana"}), refused(404, "not_found")
            )
            return
        body: Json = {"name": self.bench.name("Cliente")} | ({"document": document} if document else {})
        verdict = catalogue.may_take_document(self.bench.world, document or customer.document, customer)
        if not wrong:
            body["document_type"] = "cnpj"
            verdict = refused(409, "document_type_conflict", *verdict.codes)
        reply = self.bench.hold(self.bench.client.ask("PUT", f"/v2/customers/{customer.id}", body), verdict)
        if verdict.granted:
            customer.name, customer.document = body["name"], document or customer.document
            self.bench.world.emit("customer.updated")
            agree("customer", customer.view(), reply.body["customer"])


def plan_state(plan: Plan) -> tuple[object, ...]:
    """What an update can change."""
    return plan.name, plan.amount, plan.unit, plan.count, plan.limit, plan.methods, plan.status


class KeyRules:
    """Mixed into the machine."""

    bench: Bench

    @rule(
        scopes=st.sampled_from((("projects:read",), ("customers:write", "projects:read"), ("orders:read",))),
        life=st.sampled_from((None, None, HOUR, DAY, 40 * DAY)),
        limit=st.booleans(),
        number=NUMBER,
    )
    def create_key(self, scopes: tuple[str, ...], life: int | None, limit: bool, number: int) -> None:
        """With a life, with few projects, or without limits."""
        world = self.bench.world
        project = pick(world.projects, number) if limit else None
        expires = None if life is None else world.now + life
        body = {
            "name": self.bench.name("Chave"),
            "scopes": [*scopes],
            "expires_at": None if expires is None else iso(expires),
            "allowed_projects": [project.id] if project else [],
        }
        shown = self.bench.client.ask("POST", "/api-keys", body).hold(granted(201)).body["api_key"]
        key = Key(shown["id"], shown["private_key"], scopes, (project,) if project else (), expires)
        world.keys.append(key)
        world.emit("api_key.created")
        agree("key", key.view(), shown)

    @precondition(lambda self: self.bench.world.keys)
    @rule(number=NUMBER, active=st.sampled_from((None, False, True)), life=st.sampled_from((0, 0, HOUR, 9 * DAY)))
    def update_key(self, number: int, active: bool | None, life: int) -> None:
        """Off, on, or a new life."""
        world = self.bench.world
        key = pick(world.keys, number)
        assert key is not None
        body: Json = {} if active is None else {"is_active": active}
        body |= {"expires_at": iso(world.now + life)} if life else {}
        if not body:
            body = {"name": self.bench.name("Chave")}
        path = f"/api-keys/{key.id}"
        moved = body | ({"expires_at": world.now + life} if life else {})
        verdict = catalogue.may_update_key(world, key, moved)
        reply = self.bench.hold(self.bench.client.ask("PUT", path, body), verdict)
        if verdict.granted:
            catalogue.update_key(world, key, moved)
            agree("key", key.view(), reply.body["api_key"])

    @precondition(lambda self: self.bench.world.keys)
    @rule(number=st.integers(0, 9))
    def delete_key(self, number: int) -> None:
        """It stops at once."""
        key = pick(self.bench.world.keys, number)
        assert key is not None
        self.bench.client.ask("DELETE", f"/api-keys/{key.id}").hold(granted())
        self.bench.world.keys.remove(key)
        self.bench.world.emit("api_key.deleted")
        self.bench.client.ask("DELETE", f"/api-keys/{key.id}").hold(refused(404, "not_found"))
        verdict = catalogue.may_use(self.bench.world, key, "projects:read")
        self.bench.hold(self.bench.client.ask("GET", "/v2/projects", token=key.secret), verdict)

    @precondition(lambda self: self.bench.world.keys)
    @rule(number=NUMBER, other=NUMBER, what=st.sampled_from(("list", "read", "keys", "customer")))
    def use_key(self, number: int, other: int, what: str) -> None:
        """Each reason for which a key is turned away."""
        world = self.bench.world
        key = pick(world.keys, number)
        assert key is not None
        project = pick(world.projects, other)
        if what == "read" and project is not None:
            verdict = catalogue.may_use(world, key, "projects:read", project)
            reply = self.bench.client.ask("GET", f"/v2/projects/{project.id}", token=key.secret)
        elif what == "keys":
            verdict = catalogue.may_use(world, key, "-")
            verdict = refused(403, "jwt_required") if verdict.status == 403 else verdict
            reply = self.bench.client.ask("GET", "/api-keys", token=key.secret)
        elif what == "customer":
            verdict = catalogue.may_use(world, key, "customers:read")
            reply = self.bench.client.ask("GET", "/v2/customers?limit=1", token=key.secret)
        else:
            verdict = catalogue.may_use(world, key, "projects:read")
            reply = self.bench.client.ask("GET", "/v2/projects", token=key.secret)
            if verdict.granted and reply.status == 200:
                seen = [found for found in world.projects if not key.projects or found in key.projects]
                total = reply.body["data"]["pagination"]["total"]
                strangers = 0 if key.projects else len(self.bench.strangers["projects"])
                agree("projects a key sees", len(seen) + strangers, total)
        self.bench.hold(reply, verdict)
