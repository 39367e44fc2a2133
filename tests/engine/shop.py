"""A world of its own in a server that is called without a network, and its merchant."""

from dataclasses import dataclass

from stub_server.engine.sandbox import Sandbox

from .inside import Answer, Inside
from .small import origin, serve
from .state import token_of


@dataclass(frozen=True, slots=True)
class Shop:
    """A merchant who may do everything in a world."""

    inside: Inside
    world: Sandbox

    def ask(self, method: str, target: str, body: object = None, idem: str | None = None) -> Answer:
        """A request of his."""
        return self.inside.ask(method, target, body, token_of(self.inside, self.world), idem)


def shop_in(inside: Inside) -> Shop:
    """A new world, its clock standing."""
    world = origin(inside.app)
    serve(inside.app, world)
    return Shop(inside, world)
