"""What a sequence may do to API keys, and with them."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from . import model_catalogue as catalogue
from .bench import UNKNOWN, Bench, pick
from .client import agree
from .model import Json, Key, Project, granted, refused
from .moments import DAY, HOUR, iso

NUMBER = st.integers(0, 5)


class KeyRules:
    """Mixed into the machine."""

    bench: Bench

    @rule(
        scopes=st.sampled_from(
            (
                ("projects:read", "projects:write"),
                ("customers:read", "projects:read"),
                ("orders:read",),
            )
        ),
        life=st.sampled_from((None, None, HOUR, DAY, 40 * DAY, 0, -HOUR)),
        limit=st.booleans(),
        number=NUMBER,
        use=st.sampled_from((None, "read", "create", "create")),
    )
    def create_key(
        self, scopes: tuple[str, ...], life: int | None, limit: bool, number: int, use: str | None
    ) -> None:
        """With a life, which may be over, with few projects, or without limits; and nearly always
        it is used.
        """
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
        agree("key", key.view(world.now), shown)
        self.bench.settle()
        self._use(key, number, "keys")
        if use is not None:
            self._use(key, number, use)

    @precondition(lambda self: self.bench.world.keys)
    @rule(
        number=NUMBER,
        active=st.sampled_from((None, False, True)),
        life=st.sampled_from((0, 0, HOUR, 9 * DAY, -HOUR)),
        delete=st.integers(0, 4),
    )
    def change_key(self, number: int, active: bool | None, life: int, delete: int) -> None:
        """Off, on, a new life, or the end."""
        if not delete:
            self._delete(number)
            return
        world = self.bench.world
        key = pick(world.keys, number)
        assert key is not None
        if active is False and life < 0:
            life = 0  # whether what is switched off and over at once has expired, no rule says
        body: Json = {} if active is None else {"is_active": active}
        body |= {"expires_at": iso(world.now + life)} if life else {}
        if not body:
            body = {"name": self.bench.name("Chave")}
        path = f"/api-keys/{key.id}"
        moved = body | ({"expires_at": world.now + life} if life else {})
        verdict = catalogue.may_update_key(world, key, moved)
        reply = self.bench.hold(self.bench.client.ask("PUT", path, body), verdict)
        if reply.granted:
            catalogue.update_key(world, key, moved)
            agree("key", key.view(world.now), reply.body["api_key"])
            self.bench.settle()
            self._use(key, 0, "read")

    def _delete(self, number: int) -> None:
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
    @rule(
        number=NUMBER,
        other=NUMBER,
        what=st.sampled_from(("list", "read", "create", "keys", "customers")),
    )
    def use_key(self, number: int, other: int, what: str) -> None:
        """Each reason for which a key is turned away."""
        key = pick(self.bench.world.keys, number)
        assert key is not None
        self._use(key, other, what)

    def _use(self, key: Key, other: int, what: str) -> None:
        world = self.bench.world
        project = pick(
            [found for found in world.projects if found not in key.projects] or world.projects,
            other,
        )
        if what == "read" and project is not None:
            verdict = catalogue.may_use(world, key, "projects:read", project)
            path = f"/v2/projects/{project.id}"
            body = None
        elif what == "create" and key.projects:
            verdict = catalogue.may_use(world, key, "projects:write", Project(UNKNOWN, "", "draft"))
            path = "/v2/projects"
            body = {"name": self.bench.name("Clube")}
        elif what == "keys":  # a credential of the wrong kind is not looked at, nor counted
            verdict = refused(403, "jwt_required")
            path = "/api-keys"
            body = None
        elif what == "customers":
            verdict = catalogue.may_use(world, key, "customers:read")
            path = "/v2/customers"
            body = None
        else:
            verdict = catalogue.may_use(world, key, "projects:read")
            path = "/v2/projects"
            body = None
        method = "GET" if body is None else "POST"
        reply = self.bench.hold(
            self.bench.client.ask(method, path, body, token=key.secret), verdict
        )
        if reply.granted and path == "/v2/projects":
            seen = [found for found in world.projects if not key.projects or found in key.projects]
            strangers = 0 if key.projects else len(self.bench.strangers["projects"])
            agree(
                "projects a key sees",
                len(seen) + strangers,
                reply.body["data"]["pagination"]["total"],
            )
        if reply.granted and path == "/v2/customers":
            buyers = {id(order.customer) for order in world.orders if order.project in key.projects}
            strangers = len(self.bench.strangers["customers"])
            total = len(buyers) if key.projects else len(world.customers) + strangers
            agree("customers a key sees", total, reply.body["pagination"]["total"])
