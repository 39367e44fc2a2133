"""Secrets in messages: which operations carry some, by the contract, and messages without them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import orjson

from .document import Document
from .source import Json

REDACTED = "[redacted]"
SECRET_HEADERS = (
    "authorization", "x-sandbox-admin-key", "cookie", "proxy-authorization", "x-api-key", "api-key", "x-auth-token"
)  # fmt: skip
MARK = "x-secret"
_ASIDE = frozenset(("examples", "example", "links", "description"))
_ALWAYS = frozenset((*SECRET_HEADERS, "admin_key"))
_MOST = 50  # secrets of a message that are looked for in others
_SHORTEST = 8  # characters of a secret that is also looked for in other texts
_SHOWN = 12  # of them that are enough to know it by: refusals repeat values cut short
# Values that are recognised wherever they stand: private keys, signing keys and tokens of this server.
_VALUES = re.compile(
    r"(?<![A-Za-z0-9])(?:sk_[a-z]+_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{16,}|eyJ[\w-]+\.[\w-]+\.[\w-]*)", re.ASCII
)
_MEMBERS = re.compile(r"(?i)((?:^|[?&])(?:(?:private|signing|admin)_key|authorization|token|jwt)=)[^&]+")


class Secrets:
    """The secrets of some contracts: members that are marked `x-secret`, and headers that carry credentials."""

    def __init__(self, *documents: Document) -> None:
        self._documents = documents

    @cached_property
    def names(self) -> frozenset[str]:
        """Members that are secret wherever they occur, in lower case."""
        marked = (member for document in self._documents for member in _marked(document.raw["components"]))
        return _ALWAYS.union(marked)

    @cached_property
    def operations(self) -> frozenset[str]:
        """The ids of operations whose requests or answers have secrets, or headers that may be some."""
        return frozenset(ident for document in self._documents for ident in _carriers(document))

    def without(self, *bodies: bytes | None) -> list[bytes | None]:
        """Messages that belong together without their secrets: what is one in one of them is not in another either.

        One that is no JSON and names a secret is left out as a whole.
        """
        found: set[str] = set()
        stripped = [body and self._stripped(body, found) for body in bodies]
        values = [value for value in found if len(value) >= _SHORTEST]
        if len(values) > _MOST:
            return [body and REDACTED.encode() for body in bodies]
        return [body and _replaced(body, values) for body in stripped]

    def _stripped(self, body: bytes, found: set[str]) -> bytes:
        try:
            value = orjson.loads(body)
        except ValueError:
            text = body.decode("latin-1").lower()
            return REDACTED.encode() if any(name in text for name in self.names) else body
        return orjson.dumps(self._walked(value, found))

    def _walked(self, node: Any, found: set[str]) -> Any:
        if isinstance(node, list):
            return [self._walked(item, found) for item in node]
        if not isinstance(node, dict):
            return node
        is_header = str(node.get("name")).lower() in SECRET_HEADERS
        return {
            name: _taken(member, found)
            if name.lower() in self.names or (is_header and name == "value")
            else self._walked(member, found)
            for name, member in node.items()
        }


def plain(text: bytes) -> bytes:
    """A path, query or header without what looks like a secret of this server."""
    return _MEMBERS.sub(rf"\1{REDACTED}", _VALUES.sub(REDACTED, text.decode("latin-1"))).encode("latin-1")


def _taken(value: Any, found: set[str]) -> Any:
    if isinstance(value, str):
        found.add(value)
    return value if value is None else REDACTED


def _replaced(body: bytes, values: Iterable[str]) -> bytes:
    """A body without certain texts, nor their beginnings, which refusals repeat."""
    text = body.decode("utf-8", "surrogateescape")
    for value in values:
        text = "".join(_pieces(text, value))
    return _VALUES.sub(REDACTED, text).encode("utf-8", "surrogateescape")


def _pieces(text: str, value: str) -> Iterator[str]:
    """A text with every occurrence of the beginning of a value, as far as they are equal, taken out."""
    done, at = 0, text.find(value[:_SHOWN])
    while at >= 0:
        yield text[done:at]
        yield REDACTED
        done = at + next(
            (i for i, (one, two) in enumerate(zip(text[at : at + len(value)], value, strict=False)) if one != two),
            len(value),
        )
        at = text.find(value[:_SHOWN], done)
    yield text[done:]


def _marked(node: Json) -> Iterator[str]:
    """The members that are secrets themselves, wherever they stand in a document."""
    if isinstance(node, dict):
        properties = node.get("properties")
        for name, member in properties.items() if isinstance(properties, dict) else ():
            if isinstance(member, dict) and member.get(MARK) is True:
                yield name.lower()
        for member in node.values():
            yield from _marked(member)
    elif isinstance(node, list):
        for item in node:
            yield from _marked(item)


def _carriers(document: Document) -> Iterator[str]:
    """The operations from which a mark can be reached."""
    outgoing: dict[str, set[str]] = {}
    carrying: set[str] = set()
    for kind, named in document.raw["components"].items():
        for name, node in named.items():
            place = f"#/components/{kind}/{name}"
            outgoing[place] = set(_found(node))
            if MARK in outgoing[place]:
                carrying.add(place)
    more = True
    while more:
        more = False
        for place, reached in outgoing.items():
            if place not in carrying and not carrying.isdisjoint(reached):
                carrying.add(place)
                more = True
    carrying.add(MARK)
    for operation in document.operations.values():
        if not carrying.isdisjoint(_found(operation.raw)):
            yield operation.id


def _found(node: Json) -> Iterator[str]:
    """The references in a node, and the mark if it has one."""
    if isinstance(node, list):
        for item in node:
            yield from _found(item)
    elif isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield "/".join(node["$ref"].split("/")[:4])
        if MARK in node:
            yield MARK
        for name, member in node.items():
            if name not in _ASIDE:
                yield from _found(member)
