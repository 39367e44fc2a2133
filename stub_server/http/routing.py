"""Routing and Security: the operation of a path and method, and its caller."""

import re
from collections.abc import Mapping, Sequence
from time import perf_counter_ns
from typing import Any
from urllib.parse import quote

from connexion.middleware.abstract import ROUTING_CONTEXT, SpecMiddleware
from connexion.spec import Specification
from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, CONTROL, Call
from ..calls.credentials import Gate
from ..contract.document import Document
from ..contract.source import METHODS
from ..kernel.problem import NotFound
from ..kernel.text import nearest
from .answers import not_allowed, options

DOCS = "/docs"  # the page of each operation is below this path, named by its id
_VERSION = re.compile(r"api|v[0-9]+").fullmatch
_LONGEST = 300  # characters of a path for which a similar one is looked for


class _Node:
    """One segment of the path tree."""

    __slots__ = ("allow", "literals", "methods", "parameter", "template")

    def __init__(self, parameter: str = "") -> None:
        self.parameter = parameter  # as the contract spells it, where any segment leads here
        self.literals: dict[str, _Node] = {}
        self.template: _Node | None = None
        self.methods: dict[str, dict[str, Any]] = {}
        self.allow = ""


class Routing(SpecMiddleware):
    """A tree of path segments. A literal segment wins over a templated one, in whatever order the document has them.

    405 and OPTIONS name every method of the path; a trailing slash is another path; HEAD is routed like GET.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._root = _Node()
        self._ids: list[str] = []

    def add_api(self, specification: Specification, base_path: str | None = None, **options: Any) -> None:
        """Register every path of a contract below its base path."""
        base = specification.base_path if base_path is None else base_path
        for path, item in specification["paths"].items():
            node = self._root
            for segment in (base + path).split("/")[1:]:
                if segment.startswith("{"):
                    node.template = node = node.template or _Node(segment)
                else:
                    node = node.literals.setdefault(segment, _Node())
            for method in METHODS:
                if method in item:
                    self._ids.append(item[method]["operationId"])
                    routed = {"api_base_path": base, "operation_id": item[method]["operationId"]}
                    node.methods[method.upper()] = routed
            if "GET" in node.methods:
                node.methods.setdefault("HEAD", node.methods["GET"])
            node.allow = ", ".join(sorted({*node.methods, "OPTIONS"}))
            if path == "/" and base:  # the base path itself is the index, with its slash or without
                index = self._root.literals[base[1:]]
                index.methods, index.allow = node.methods, node.allow

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        path, call = scope["path"], scope[CALL]
        node, values = _walk(self._root, path.split("/"), 1) or (None, ())
        if node is None:
            raise self._no_route(call.method, path)
        routed = node.methods.get(call.method)
        if routed is None:
            if call.method == "OPTIONS":
                return _options(call, node.allow)
            raise not_allowed(call.method, node.allow)
        call.path_values = values
        scope["extensions"][ROUTING_CONTEXT] = routed
        return self.app(scope, receive, send)

    def _no_route(self, method: str, path: str) -> NotFound:
        """404 for an unknown path, with the nearest known one."""
        page = path.removeprefix(f"{DOCS}/")
        if page != path:
            name = nearest(page, self._ids)
            message, rest = f"There is no operation {page[:200]}.", "/ lists every operation."
            guess = name and f"{DOCS}/{name}"
        else:
            below = CONTROL if path.startswith(CONTROL) else ""
            message = f"The {'control surface' if below else 'API'} has no path {path[:200]}."
            near, rest = self.nearest(method, path), f"{below}/openapi.json lists every path."
            guess = near and f"{near[0]} {quote(near[1], safe='/{}')}"
        return NotFound(message, advice=f"Did you mean {guess}? {rest}" if guess else rest, code="route_not_found")

    def nearest(self, method: str, path: str) -> tuple[str, str] | None:
        """The method and path that are most similar to those of a request without an operation."""
        if len(path) > _LONGEST:
            return None
        # An empty segment is an id left out, or a slash too many.
        readings = dict.fromkeys((path.strip("/"), path[1:], re.sub("//+", "/", path).strip("/")))
        found = [near for reading in readings if (near := self._nearest(reading.split("/"))) is not None]
        if not found:
            return None
        node, spelled = next((near for near in found if method in near[0].methods), found[0])
        return method if method in node.methods else next(iter(node.methods)), f"/{'/'.join(spelled)}"

    def _nearest(self, segments: Sequence[str]) -> tuple[_Node, list[str]] | None:
        is_control = segments[0] == CONTROL[1:]
        rest = segments[1:] if is_control else segments
        while rest and _VERSION(rest[0]):
            rest = rest[1:]
        bases = [[CONTROL[1:]]] if is_control else [["v2"], [], [CONTROL[1:]]]
        found = (_like(self._root, [*base, *rest]) for base in bases if any(rest))
        return next(filter(None, found), None)


async def _options(call: Call, allow: str) -> None:
    call.answer = options(allow)


def _like(node: _Node, segments: Sequence[str]) -> tuple[_Node, list[str]] | None:
    """The node whose path is most similar to these segments, and how it is spelled."""
    spelled: list[str] = []
    for segment in segments:
        name = segment if segment in node.literals else nearest(segment, list(node.literals)) if segment else None
        child = node.template if name is None else node.literals[name]
        if child is None:
            return None
        spelled.append(name or segment or child.parameter)
        node = child
    return (node, spelled) if node.methods else None


def _walk(node: _Node, segments: list[str], at: int) -> tuple[_Node, tuple[str, ...]] | None:
    """The node of a path, and the values of its parameters; a literal wins, unless nothing matches below it."""
    if at == len(segments):
        return (node, ()) if node.methods else None
    segment = segments[at]
    literal = node.literals.get(segment)
    found = None if literal is None else _walk(literal, segments, at + 1)
    if found is None and node.template is not None and segment:
        found = _walk(node.template, segments, at + 1)
        return None if found is None else (found[0], (segment, *found[1]))
    return found


class Security:
    """Turns the credential of a request into its caller, where the contract requires one."""

    def __init__(self, app: ASGIApp, documents: Mapping[str, Document], gate: Gate) -> None:
        """`documents` by base path."""
        self.app, self._gate = app, gate
        self._operations = {base: document.operations for base, document in documents.items()}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        call, routed = scope[CALL], scope["extensions"][ROUTING_CONTEXT]
        call.operation = operation = self._operations[routed["api_base_path"]][routed["operation_id"]]
        call.trace.operation = operation.id
        if operation.scheme is not None:
            call.trace.auth_at = perf_counter_ns()
            self._gate.admit(call, operation)
        return self.app(scope, receive, send)
