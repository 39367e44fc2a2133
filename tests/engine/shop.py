"""A shop in a world: who asks, with whose credentials, and the sequences that tests have them ask."""

from typing import NamedTuple

from stub_server.engine.draft import Draft
from stub_server.engine.sandbox import Sandbox
from stub_server.engine.step import Cause, Step

from .actions import ACTIONS
from .inside import Answer, Inside
from .scene import MERCHANTS, Request, Scene, pick
from .small import Wall, origin, serve, set_wall
from .state import token_of

Kept = list[Step]
REPEAT = "repeat"
"""An action: the newest request that was granted under an Idempotency-Key is sent again, key and all."""


class Turn(NamedTuple):
    """One request of a sequence: an action, who asks, two numbers that choose what for, and an Idempotency-Key."""

    action: str
    who: int
    a: int
    b: int
    idem: str | None


class Shop:
    """Who asks, with whose credentials, in a world that it looks into to find what there is to ask about."""

    def __init__(self, inside: Inside, world: Sandbox, hooks: tuple[str, ...]) -> None:
        """`hooks` are addresses of webhooks."""
        self.inside, self.world = inside, world
        self.scene = Scene(world, hooks)
        self.keys: list[str] = []
        self.granted: tuple[Request, str, str | None] | None = None
        self.statuses: dict[str, set[int]] = {}

    def copy(self, world: Sandbox) -> "Shop":
        """The same callers in another world that has the same past."""
        twin = Shop(self.inside, world, self.scene.hooks)
        twin.keys, twin.scene.serial, twin.granted = list(self.keys), self.scene.serial, self.granted
        return twin

    def play(self, turn: Turn) -> Answer:
        """Send one request of a sequence."""
        merchant = MERCHANTS[(0, 0, 0, 0, 0, 0, 0, 0, 1, 2)[turn.who]] or self.world.origin.home
        if merchant not in self.world.stores:
            made = self.inside.ask("POST", "/_sandbox/tokens", {"merchant_id": merchant})
            assert 201 == made.status, made.body
        store = self.world.stores[merchant]
        token = token_of(self.inside, self.world, merchant)
        if turn.who in (6, 7) and self.keys:
            token = pick(self.keys, turn.a)
        self.scene.serial += 1
        idem = turn.idem
        if turn.action == REPEAT:
            request, token, idem = self.granted or (Request("GET", "/v2/orders"), token, None)
        else:
            request = ACTIONS[turn.action](self.scene, store, turn.a, turn.b)
        answer = self.inside.ask(*request, token=token, idem=idem)
        assert answer.status < 500, (turn, request, answer)
        self.statuses.setdefault(turn.action, set()).add(answer.status)
        if "idempotent-replayed" in answer.headers:
            self.statuses.setdefault("replayed", set()).add(answer.status)
        elif idem is not None and answer.status < 300 and request.target.startswith("/v2/"):
            self.granted = request, token, idem
        if turn.action == "create key" and answer.status == 201:
            self.keys.append(answer.json()["api_key"]["private_key"])
        return answer

    def open(self) -> None:
        """A shop that sells, with a member, a webhook for everything and two keys: sequences must get deep."""
        opening = (
            ("create project", 1), ("create plan", 1), ("create plan", 2), ("create product", 0),
            ("create customer", 0), ("create webhook", 0), ("create key", 0), ("create key", 1), 
            ("place order", 0), ("pay order", 0), ("place order", 5), ("advance", 1),
        )  # fmt: skip
        for name, number in opening:
            self.play(Turn(name, 0, number, number, None))


def shop_in(inside: Inside, hooks: tuple[str, ...]) -> Shop:
    """A new world with an opened shop in it."""
    world = origin(inside.app)
    set_wall(world.clock, Wall(world.clock.now))
    serve(inside.app, world)
    shop = Shop(inside, world, hooks)
    shop.open()
    return shop


def flush_usage(sandbox: Sandbox) -> list[Step]:
    """Record now what no step has recorded yet: a step for each merchant whose keys were used since their last one."""
    steps = []
    for store in sandbox.stores.values():
        if store.unrecorded:
            draft = Draft(sandbox, store, Cause("clock", "", "usage"))
            draft.clock = sandbox.clock.at(draft.now)
            step = draft.record()
            assert step is not None  # the draft sets the clock
            steps.append(step)
    return steps


def at_rest(shop: Shop) -> Kept:
    """The steps of a world in which nothing is left to be done or recorded now."""
    while (due := shop.world.timers.next_due()) is not None and due <= shop.world.clock.now:
        shop.inside.ask("GET", "/_sandbox/clock")
    flush_usage(shop.world)
    log = shop.world.log
    assert 1 == log.oldest, "the log has let steps go that the test needs"
    return list(log)
