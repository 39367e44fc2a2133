"""Connexion's stack, and Routing in it: the operation of a path and method."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import quote

from connexion.middleware import ConnexionMiddleware
from connexion.middleware.abstract import AbstractRoutingAPI, SpecMiddleware
from connexion.operations import AbstractOperation
from connexion.spec import Specification

from ...core.problem import NotFound
from ...core.text import nearest
from ..reply import Answer, not_allowed, options
from ..request import CONTROL
from ..sandboxes.sandboxes import Sandboxes
from ..server import Server
from .endpoint import Endpoint
from .way import Layer, Way

DOCS = "/docs"  # the page of each operation, error code and event is below this path, by its name
_VERSION = re.compile(r"api|v[0-9]+").fullmatch
_DEEPEST = 8
_LONGEST = 300  # characters of a path for which a similar one is looked for


class Application(ConnexionMiddleware):
    """One per server. `middlewares` are its layers, outermost first, until the first request."""

    server: Server
    sandboxes: Sandboxes

    def __init__(self, dispatch: Layer, layers: Callable[[Server], Sequence[Any]]) -> None:
        """`dispatch` is the innermost layer; `layers` returns those around it: classes that take
        the next layer.
        """
        super().__init__(dispatch, import_name=__name__, middlewares=[])
        self._layers = layers

    def serve(self, server: Server) -> None:
        """Set the server behind the layers. It must be called before the first request."""
        self.server, self.sandboxes = server, server.sandboxes
        self.middlewares = [*self._layers(server)]


class _Node:
    """One segment of the path tree."""

    __slots__ = ("allow", "literals", "methods", "parameter", "template")

    def __init__(self, parameter: str = "") -> None:
        self.parameter = parameter  # as the contract spells it, where any segment leads here
        self.literals: dict[str, _Node] = {}
        self.template: _Node | None = None
        self.methods: dict[str, Endpoint] = {}
        self.allow = ""


class Routing(SpecMiddleware):
    """A tree of path segments. A literal segment wins over a templated one, in whatever order the
    document has them.

    405 and OPTIONS name every method of the path; a trailing slash is another path; HEAD is routed
    like GET.
    """

    def __init__(self, app: Layer) -> None:
        self.app = app.__call__
        self._root = _Node()
        self._static: dict[str, _Node] = {}
        # of paths whose last segment alone is templated, by what comes before it
        self._below: dict[str, _Node] = {}

    def add_api(self, specification: Specification, **options: Any) -> None:
        _API(specification, tree=self, **options)

    def add(self, method: str, path: str, endpoint: Endpoint) -> None:
        """Add an operation to the tree, and to the two short ways through it."""
        node = self._root
        for segment in path.split("/")[1:]:
            if segment.startswith("{"):
                node.template = node.template or _Node(segment)
                node = node.template
            else:
                node = node.literals.setdefault(segment, _Node())
        node.methods[method] = endpoint
        if method == "GET":
            node.methods["HEAD"] = endpoint
        node.allow = ", ".join(sorted({*node.methods, "OPTIONS"}))
        start, _, last = path.rpartition("/")
        if "/{" not in start and last.startswith("{"):
            self._below[start] = node
        elif "/{" not in path:
            self._static[path] = node
            # the base path itself is the index, with its slash or without
            if path == f"{endpoint.base}/":
                self._static[endpoint.base] = node

    def __call__(self, way: Way) -> Awaitable[Answer]:
        path, method = way.target.path, way.request.method
        values: tuple[str, ...] = ()
        node = self._static.get(path)
        if node is None:
            start, _, last = path.rpartition("/")
            if last:
                node, values = self._below.get(start), (last,)
        if node is None:
            node, values = _walk(self._root, path.split("/"), 1) or (None, ())
        if node is None:
            raise self._no_route(method, path)
        endpoint = node.methods.get(method)
        if endpoint is None:
            if method == "OPTIONS":
                return _options(node.allow)
            raise not_allowed(method, node.allow)
        way.endpoint, way.values = endpoint, values
        way.trace.operation = endpoint.operation.id
        return self.app(way)

    def _no_route(self, method: str, path: str) -> NotFound:
        """404 for an unknown path, with the nearest known one."""
        below = CONTROL if path.startswith(CONTROL) else ""
        advice = f"{below}/openapi.json lists every path, and /llms.txt says how to begin."
        near = self.nearest(method, path)
        if near is not None:
            spelled = quote(near[1], safe="/{}")
            advice = f"Did you mean {near[0]} {spelled}? {advice}"
        return NotFound(f"There is no path {path[:200]}.", advice=advice, code="route_not_found")

    def nearest(self, method: str, path: str) -> tuple[str, str] | None:
        """The method and path that are most similar to those of a request without an operation."""
        found = [near for near in map(self._nearest, _readings(path)) if near is not None]
        for node, spelled in found:
            if method in node.methods:
                return method, spelled
        if not found:
            return None
        node, spelled = found[0]
        return next(iter(node.methods)), spelled

    def _nearest(self, segments: Sequence[str]) -> tuple[_Node, str] | None:
        """The node whose path is most similar to these segments, and that path.

        The version of the API may be left out, or be another.
        """
        if len(segments) > _DEEPEST or sum(map(len, segments)) > _LONGEST:
            return None
        is_control = segments[:1] == [CONTROL[1:]]
        rest = segments[1:] if is_control else segments
        while rest and _VERSION(rest[0]):
            rest = rest[1:]
        bases = [[CONTROL[1:]]] if is_control else [["v2"], [], [CONTROL[1:]]]
        if not any(rest):
            return None
        for base in bases:
            near = _like(self._root, [*base, *rest])
            if near is not None:
                return near
        return None


def _readings(path: str) -> list[list[str]]:
    """How a path may be read, likeliest first: an empty segment is an id left out, or a
    slash too many.
    """
    whole = path.strip("/").split("/")
    plain = [segment for segment in whole if segment]
    if plain != whole:
        return [whole, plain]
    return [plain, [*plain, ""]] if path.endswith("/") else [plain]


async def _options(allow: str) -> Answer:
    return options(allow)


def _like(node: _Node, segments: Sequence[str]) -> tuple[_Node, str] | None:
    """The node whose path is most similar to these segments, and how it is spelled."""
    spelled = ""
    for segment in segments:
        name = _literal_like(segment, node)
        child = node.template if name is None else node.literals[name]
        if child is None:
            return None
        spelled += f"/{name or segment or child.parameter}"
        node = child
    return (node, spelled) if node.methods else None


def _literal_like(segment: str, node: _Node) -> str | None:
    """The literal segment below a node that is this one, or nearest to it; none where an id is
    left out.
    """
    if segment in node.literals:
        return segment
    return nearest(segment, list(node.literals)) if segment else None


def _walk(node: _Node, segments: list[str], at: int) -> tuple[_Node, tuple[str, ...]] | None:
    """The node of a path, and the values of its parameters; a literal wins, unless nothing matches
    below it.
    """
    if at == len(segments):
        return (node, ()) if node.methods else None
    segment = segments[at]
    literal = node.literals.get(segment)
    found = None if literal is None else _walk(literal, segments, at + 1)
    if found is None and node.template is not None and segment:
        found = _walk(node.template, segments, at + 1)
        return None if found is None else (found[0], (segment, *found[1]))
    return found


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
