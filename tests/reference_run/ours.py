"""The sandbox's own layers, up to the one that would call the handler."""

from typing import Any

from stub_server.app import create_app
from stub_server.core.problem import Conflict
from stub_server.server.layers.routing import Routing
from stub_server.server.layers.validation import Validation
from stub_server.settings import Settings

from .wire import Decision, Request, send


class _Noting:
    """A layer after Routing, which notes the operation."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def __call__(self, way: Any) -> Any:
        if "noted" in way.scope:
            way.scope["noted"].operation = way.trace.operation
        return self.app(way)


class _Accepting:
    """A layer after Validation: what reaches it was accepted, and goes no further."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def __call__(self, way: Any) -> Any:
        if "noted" not in way.scope:  # of the preparation
            return self.app(way)
        way.scope["noted"].is_accepted = True
        raise Conflict("Accepted.")


class Ours:
    """The whole application, which stops before it would do anything."""

    def __init__(self, settings: Settings) -> None:
        self.app = create_app(settings)
        layers = []
        for layer in self.app.middlewares:
            layers.append(layer)
            if layer is Routing:
                layers.append(_Noting)
            elif layer is Validation:
                layers.append(_Accepting)
        self.app.middlewares = layers

    async def decide(self, request: Request) -> Decision:
        """What the sandbox makes of a request."""
        noted = Decision()
        noted.status = await send(self.app, request, noted=noted)
        return noted
