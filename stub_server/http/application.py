"""The server as an ASGI application: Connexion's stack, with the layers that a request meets one after the other."""

from collections.abc import Callable, Sequence
from typing import Any

from connexion.middleware import ConnexionMiddleware
from starlette.types import ASGIApp

from ..calls.server import Server
from ..sandboxes.sandboxes import Sandboxes


class Application(ConnexionMiddleware):
    """One per server. `middlewares` are its layers, outermost first, until the first request."""

    server: Server
    sandboxes: Sandboxes

    def __init__(self, dispatch: ASGIApp, layers: Callable[[Server], Sequence[Any]]) -> None:
        """`dispatch` is the innermost layer; `layers` returns those around it: classes that take the next layer."""
        super().__init__(dispatch, import_name=__name__, middlewares=[])
        self._layers = layers

    def serve(self, server: Server) -> None:
        """Set the server behind the layers. It must be called before the first request."""
        self.server, self.sandboxes, self.middlewares = server, server.sandboxes, [*self._layers(server)]
