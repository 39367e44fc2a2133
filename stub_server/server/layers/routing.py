"""Connexion's stack, and Routing in it: the operation of a path and method."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from connexion.middleware import ConnexionMiddleware
from connexion.middleware.abstract import AbstractRoutingAPI, SpecMiddleware
from connexion.operations import AbstractOperation
from connexion.spec import Specification

from ...core.problem import NotFound
from ...core.text import nearest
from ..reply import Answering, not_allowed, options
from ..request import CONTROL
from ..sandboxes.sandboxes import Sandboxes
from ..server import Server
from .dispatch import Dispatch
from .endpoint import Endpoint
from .way import Layer, Way

DOCS = "/docs"  # the page of each operation, error code and event is below this path, by its name
_PARAMETER = re.compile(r"\{[^{}]*\}")
_VERSION = re.compile(r"api|v[0-9]+").fullmatch
_LONGEST = 300  # characters of a path for which a similar one is looked for


class Application(ConnexionMiddleware):
    """One per server. `middlewares` are its layers, outermost first, until the first request."""

    server: Server
    sandboxes: Sandboxes

    def __init__(self, server: Server, layers: Callable[[Server], Sequence[Any]]) -> None:
        """`layers` returns the layers around Dispatch: classes that take the next one."""
        super().__init__(Dispatch(), import_name=__name__, middlewares=[])
        self._layers = layers
        self.serve(server)

    def serve(self, server: Server) -> None:
        """Set the server of all layers. It must be called before the first request."""
        self.server, self.sandboxes = server, server.sandboxes
        self.middlewares = [*self._layers(server)]


class Route:
    """A path of a contract, and its operations by method."""

    def __init__(self, path: str) -> None:
        self.path, self.segments = path, path.split("/")[1:]
        self.is_templated = [segment.startswith("{") for segment in self.segments]
        self.match = re.compile(_PARAMETER.sub("([^/]+)", path)).fullmatch
        self.methods: dict[str, Endpoint] = {}

    @property
    def allow(self) -> str:
        """The methods of the path, as the header has them."""
        return ", ".join(sorted({*self.methods, "OPTIONS"}))


class Routing(SpecMiddleware):
    """The paths of the contracts. A literal segment wins over a templated one, in whatever order
    the document has them.

    405 and OPTIONS name every method of the path; a trailing slash is another path; HEAD is routed
    like GET.
    """

    def __init__(self, app: Layer) -> None:
        self.app = app.__call__
        self._static: dict[str, Route] = {}
        # paths whose last segment alone is templated, by what comes before it
        self._below: dict[str, Route] = {}
        self._routes: list[Route] = []

    def add_api(self, specification: Specification, **options: Any) -> None:
        _API(specification, tree=self, **options)

    def add(self, method: str, path: str, endpoint: Endpoint) -> None:
        """Add an operation."""
        route = next((each for each in self._routes if each.path == path), None)
        if route is None:
            route = Route(path)
            self._routes = sorted([*self._routes, route], key=lambda each: each.is_templated)
        route.methods[method] = endpoint
        if method == "GET":
            route.methods["HEAD"] = endpoint
        start = path.rpartition("/")[0]
        if "/{" not in path:
            self._static[path] = route
            # the base path itself is the index, with its slash or without
            if path == f"{endpoint.base}/":
                self._static[endpoint.base] = route
        elif "/{" not in start:
            self._below[start] = route

    def __call__(self, way: Way) -> Answering:
        path, method = way.path, way.request.method
        values: tuple[str, ...] = ()
        route = self._static.get(path)
        if route is None:
            start, _, last = path.rpartition("/")
            if last:
                route, values = self._below.get(start), (last,)
        if route is None:
            route, values = self._searched(method, path)
        endpoint = route.methods.get(method)
        if endpoint is None:
            if method == "OPTIONS":
                return options(route.allow)
            raise not_allowed(method, route.allow)
        way.endpoint, way.values = endpoint, values
        way.trace.operation = endpoint.operation.id
        return self.app(way)

    def _searched(self, method: str, path: str) -> tuple[Route, tuple[str, ...]]:
        """The route of a path, and the values of its parameters.

        Raises NotFound, with the nearest route.
        """
        for route in self._routes:
            found = route.match(path)
            if found is not None:
                return route, found.groups()
        below = CONTROL if path.startswith(CONTROL) else ""
        advice = f"{below}/openapi.json lists every path, and /llms.txt says how to begin."
        near = self.nearest(method, path)
        if near is not None:
            advice = f"Did you mean {near[0]} {quote(near[1], safe='/{}')}? {advice}"
        raise NotFound(f"There is no path {path[:200]}.", advice=advice, code="route_not_found")

    def nearest(self, method: str, path: str) -> tuple[str, str] | None:
        """The method and path that are most similar to those of a request without an operation."""
        found = []
        if len(path) <= _LONGEST:
            for segments in _readings(path):
                found += self._like(segments)
        if not found:
            return None
        route, spelled = min(found, key=lambda each: method not in each[0].methods)
        if method not in route.methods:
            method = next(iter(route.methods))
        return method, spelled

    def _like(self, segments: Sequence[str]) -> list[tuple[Route, str]]:
        """The route that is most similar to these segments, if any is, and how it is spelled."""
        routes = [route for route in self._routes if len(route.segments) == len(segments)]
        spelled = ""
        for at, segment in enumerate(segments):
            literal = [route.segments[at] for route in routes if not route.is_templated[at]]
            name = nearest(segment, literal)
            if name is None:
                routes = [route for route in routes if route.is_templated[at]]
            else:
                routes = [route for route in routes if route.segments[at] == name]
            if not routes:
                return []
            spelled += f"/{name or segment or routes[0].segments[at]}"
        return [(route, spelled) for route in routes]


def _readings(path: str) -> Iterator[list[str]]:
    """How a path may be read, likeliest first: an empty segment is an id left out, or a slash too
    many. The version of the API may be left out, or be another.
    """
    whole = path.strip("/").split("/")
    plain = [segment for segment in whole if segment]
    last = plain if plain != whole else [*plain, ""]
    for segments in (whole, last):
        is_control = segments[:1] == [CONTROL[1:]]
        rest = segments[is_control:]
        while rest and _VERSION(rest[0]):
            rest = rest[1:]
        if any(rest):
            for base in [[CONTROL[1:]]] if is_control else [["v2"], [], [CONTROL[1:]]]:
                yield [*base, *rest]


class _API(AbstractRoutingAPI):
    """The operations of one contract as Connexion parses them, which it adds to the tree
    of Routing.
    """

    def __init__(
        self, *args: Any, tree: Routing, endpoint: Callable[..., Endpoint], **kwargs: Any
    ) -> None:
        self._tree, self._endpoint = tree, endpoint
        super().__init__(*args, **kwargs)

    def make_operation(self, operation: AbstractOperation) -> Endpoint:
        return self._endpoint(operation, self.base_path)

    def _framework_path_and_name(self, operation: AbstractOperation, path: str) -> tuple[str, str]:
        return self.base_path + path, operation.operation_id

    def _add_operation_internal(
        self, method: str, path: str, operation: Endpoint, name: str | None = None
    ) -> None:
        self._tree.add(method.upper(), path, operation)
