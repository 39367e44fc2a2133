"""Routing: the operation of a path and method, as the routing context that Connexion's middleware reads."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from connexion.middleware.abstract import ROUTING_CONTEXT, SpecMiddleware
from connexion.spec import Specification
from starlette.types import ASGIApp, Receive, Scope, Send

from ..calls.call import CALL, CONTROL, Call
from ..contract.source import METHODS
from ..kernel.problem import Missing, NotAllowed
from ..kernel.text import nearest

DOCS = "/docs"
"""Below it every operation has a page of its id."""
_VERSION = re.compile(r"api|v[0-9]+").fullmatch
_DEEPEST = 8
_SHOWN = 60


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
    """A tree of path segments. A literal segment wins over a templated one, whatever the document's order.

    405 and OPTIONS name every method of the path; a trailing slash is another path; HEAD is routed like GET.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._root = _Node()
        self._static: dict[str, _Node] = {}
        self._below: dict[str, _Node] = {}  # of paths whose last segment alone is templated, by what comes before it
        self._ids: list[str] = []

    def add_api(self, specification: Specification, base_path: str | None = None, **options: Any) -> None:
        """Register every path of a contract below its base path."""
        base = specification.base_path if base_path is None else base_path
        for path, item in specification["paths"].items():
            node, static = self._root, True
            for segment in (base + path).split("/")[1:]:
                if segment.startswith("{"):
                    static = False
                    node.template = node.template or _Node(segment)
                    node = node.template
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
            if static:
                self._static[base + path] = node
                if path == "/" and base:  # the base path itself is the index, with its slash or without
                    self._static[base] = node
            start, _, last = (base + path).rpartition("/")
            if last.startswith("{") and "{" not in start:
                self._below[start] = node

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        path = scope["path"]
        node: _Node | None = self._static.get(path)
        values: tuple[str, ...] = ()
        if node is None:
            start, _, last = path.rpartition("/")
            node = self._below.get(start)
            if node is not None and last:
                values = (last,)
            else:
                node, values = _walk(self._root, path.split("/"), 1, ())
        call: Call = scope[CALL]
        if node is None:
            raise self._no_route(call.method, path)
        routed = node.methods.get(call.method)
        if routed is None:
            if call.method == "OPTIONS":
                return _options(call, node.allow)
            raise NotAllowed(f"This path answers {node.allow}, not {call.method[:20]}.", headers={"Allow": node.allow})
        call.path_values = values
        scope["extensions"][ROUTING_CONTEXT] = routed
        return self.app(scope, receive, send)

    def _no_route(self, method: str, path: str) -> Missing:
        """404 for an unknown path, with the path that was probably meant."""
        if path.startswith(f"{DOCS}/"):
            return self._no_page(path.removeprefix(f"{DOCS}/"))
        below = CONTROL if path.startswith(CONTROL) else ""
        what = "control surface" if below else "API"
        meant = self._meant(method, path)
        hint = f"Did you mean {meant}? " if meant else ""
        return Missing(
            f"The {what} has no path {path[:200]}.",
            advice=f"{hint}{below}/openapi.json lists every path.",
            code="route_not_found",
        )

    def _no_page(self, name: str) -> Missing:
        """404 for the page of an unknown operation, with the one that was probably meant."""
        meant = nearest(name, self._ids)
        advice = f"Did you mean {DOCS}/{meant}? " if meant else ""
        return Missing(
            f"There is no operation {name[:200]}.",
            advice=f"{advice}/ lists every operation.",
            code="route_not_found",
        )

    def _meant(self, method: str, path: str) -> str | None:
        found = [meant for reading in _readings(path) if (meant := self._nearest(reading)) is not None]
        if not found:
            return None
        node, spelled = next((meant for meant in found if method in meant[0].methods), found[0])
        shown = method if method in node.methods else next(iter(node.methods))
        return f"{shown} /{'/'.join(spelled)}"

    def _nearest(self, segments: Sequence[str]) -> tuple[_Node, list[str]] | None:
        if len(segments) > _DEEPEST:
            return None
        is_control = segments[:1] == [CONTROL[1:]]
        rest = segments[1:] if is_control else segments
        while rest and _VERSION(rest[0]):
            rest = rest[1:]
        bases = [[CONTROL[1:]]] if is_control else [["v2"], [], [CONTROL[1:]]]
        found = (_like(self._root, [*base, *rest]) for base in bases if any(rest))
        return next((meant for meant in found if meant is not None), None)


def _readings(path: str) -> list[list[str]]:
    """The segments that a path may mean, likeliest first: an empty one is a missing id, or a slash too many."""
    whole = path.strip("/").split("/")
    plain = [segment for segment in whole if segment]
    if plain != whole:
        return [whole, plain]
    return [plain, [*plain, ""]] if path.endswith("/") else [plain]


async def _options(call: Call, allow: str) -> None:
    call.answer = 204, [(b"allow", allow.encode())], (b"",), b""


def _like(node: _Node, segments: Sequence[str]) -> tuple[_Node, list[str]] | None:
    """The node whose path is most similar to these segments, and how it is spelled."""
    spelled: list[str] = []
    for segment in segments:
        name = segment if segment in node.literals else nearest(segment, list(node.literals)) if segment else None
        child = node.template if name is None else node.literals[name]
        if child is None:
            return None
        spelled.append(name or quote(segment[:_SHOWN]) or child.parameter)
        node = child
    return (node, spelled) if node.methods else None


def _walk(
    node: _Node, segments: list[str], start: int, values: tuple[str, ...]
) -> tuple[_Node | None, tuple[str, ...]]:
    for at in range(start, len(segments)):
        segment = segments[at]
        child = node.literals.get(segment)
        if child is not None:
            if node.template is not None:  # the literal wins, unless nothing matches below it
                found = _walk(child, segments, at + 1, values)
                if found[0] is not None:
                    return found
                child = None
            else:
                node = child
        if child is None:
            if node.template is None or not segment:
                return None, ()
            node, values = node.template, (*values, segment)
    return (node, values) if node.methods else (None, ())
