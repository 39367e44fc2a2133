"""Secrets in messages: which operations carry some, by the contract, and messages and texts without them.

A text has one where something looks like a key or token of this server. Every scan takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import orjson

from .document import Document
from .source import Json

REDACTED = "[redacted]"
LEFT_OUT = REDACTED.encode()
"""What is kept of a body that is left out as a whole."""
SECRET_HEADERS = (
    "authorization", "x-sandbox-admin-key", "x-sandbox-control-key", "cookie", "proxy-authorization", "x-api-key",
    "api-key", "x-auth-token",
)  # fmt: skip
MARK = "x-secret"
LARGEST, MOST_VALUES, DEEPEST = 32_768, 4_000, 200  # bytes, values and levels of messages that are looked through
LARGEST_SEARCHED = 262_144  # bytes of a body in which signs of a secret are searched for
_ASIDE = frozenset(("examples", "example", "links", "description"))
_ALWAYS = frozenset(
    (*SECRET_HEADERS, "admin_key", "control_key", "private_key", "signing_key", "password", "token", "jwt")
)
_MOST = 50  # secrets of a message that are looked for in others
_MOST_COMPARED = 2_097_152  # bytes of messages, times the secrets that are looked for in them
_SHORTEST = 8  # characters of a secret that is also looked for in other texts
_SHORTEST_ADMIN_KEY = 4
_MOST_ENCODED = 4_000  # percent signs of a body that is read percent-decoded
_MOST_MEMBERS = 50  # of a query that is looked through
# What every secret in a body has, in lower case: a name, the look of a value, or letters written as escapes.
_STEMS = ("_key", "-key", "authorization", "cookie", "password", "token", "jwt")
_IN_BODIES = ("sk_", "whsec_", "eyj", "\\u00")
_RARE = "\\zjxqwkvh_"
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([a-z0-9._:-]+)")
_AS_IT_IS = frozenset((b"utf-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1", b"latin1", b"windows-1252"))
_READABLE = frozenset((b"utf-16", b"utf-16le", b"utf-16be", b"utf-32", b"utf-32le", b"utf-32be", b"utf-7"))
_MOST_CLEAN, _LONGEST_CLEAN = 64, 1_024  # queries that are known to have no secret: how many, and bytes
_SHOWN = 12  # characters of a secret that are enough to know it by: refusals repeat values cut short
_BLOCK = 16  # characters that are compared at once
_MOST_READINGS = 8  # of a text that is percent-encoded again and again
# Each begins with letters that are found fast, and takes what follows without going back.
_KEYS = (
    re.compile(r"sk_(?<![A-Za-z0-9]sk_)[a-z]++_[A-Za-z0-9]{6,}+"),
    re.compile(r"whsec_(?<![A-Za-z0-9]whsec_)[A-Za-z0-9+/=]{6,}+"),
)
# Takes the whole word also where it is no token: the search goes on behind it, not in it.
_TOKEN = re.compile(r"eyJ[\w-]*+(\.[\w-]++\.[\w-]*+)?", re.ASCII)


class TooMuch(Exception):
    """A message is too deep or has too many values to be looked through."""


class Secrets:
    """The secrets of some contracts: members that are marked `x-secret`, and headers that carry credentials."""

    def __init__(self, *documents: Document, admin_key: bytes | None = None) -> None:
        """`admin_key` is the server's, left out wherever it stands."""
        self._documents = documents
        self._admin_key = None if admin_key is None or len(admin_key) < _SHORTEST_ADMIN_KEY else admin_key
        self._own = "" if self._admin_key is None else self._admin_key.decode("latin-1")
        self._clean: set[bytes] = set()

    @cached_property
    def names(self) -> frozenset[str]:
        """Members that are secret wherever they occur, in lower case."""
        marked = (member for document in self._documents for member in _marked(document.raw["components"]))
        return _ALWAYS.union(marked)

    @cached_property
    def operations(self) -> frozenset[str]:
        """The ids of operations whose requests or answers have secrets, or headers that may be some."""
        return frozenset(ident for document in self._documents for ident in _carriers(document))

    @cached_property
    def _signs(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """What a body has that names a secret or has the look of one, by the rarest letter in it."""
        signs = (*_IN_BODIES, *_STEMS, *sorted(n for n in self.names if not any(stem in n for stem in _STEMS)))
        groups: dict[str, tuple[str, ...]] = {}
        for sign in signs:
            letter = next((letter for letter in _RARE if letter in sign), sign[0])
            groups[letter] = (*groups.get(letter, ()), sign)
        return tuple(groups.items())

    def suspects(self, path: str, query: bytes, body: bytes) -> bool:
        """Whether a request may have a secret besides its headers: fast, and too often rather than too seldom."""
        if len(body) > LARGEST_SEARCHED:
            return True
        if self._admin_key is not None and (self._own in path or b"\\" in body or self._has_own(body)):
            return True  # an escape may stand for a part of the key
        if query and query not in self._clean and self._is_in_query(query):
            return True
        # Texts are searched faster than bytes, and one letter much faster than three.
        if "?" in path or "%" in path or ("_" in path and ("sk_" in path or "whsec_" in path)):
            return True
        return "eyJ" in path or (body != b"" and self._has_sign(body))

    def suspects_encoded(self, media: bytes, body: bytes) -> bool:
        """Whether a body may have a secret in the charset that its media type declares, or cannot be read in it."""
        declared = _CHARSET.search(media.lower())
        if declared is None or declared[1] in _AS_IT_IS:
            return False
        if declared[1] not in _READABLE or len(body) > LARGEST_SEARCHED:
            return True
        try:
            text = body.decode(declared[1].decode())
        except ValueError:
            return True
        return self.suspects("", b"", text.encode("utf-8", "surrogatepass"))

    def may_be_in(self, headers: bytes) -> bool:
        """Whether headers may have a secret: true too often rather than too seldom."""
        text = headers.decode("latin-1")
        return (
            "?" in text or "%" in text or "sk_" in text or "whsec_" in text or "eyJ" in text or self._has_own(headers)
        )

    def _is_in_query(self, query: bytes) -> bool:
        """Whether a query may have one; a client sends the same queries again and again."""
        if b"%" in query or self._has_sign(query) or self._has_own(query):
            return True
        if len(query) < _LONGEST_CLEAN:
            if len(self._clean) >= _MOST_CLEAN:
                self._clean.clear()
            self._clean.add(query)
        return False

    def _has_own(self, text: bytes) -> bool:
        return self._admin_key is not None and self._admin_key in text

    def _has_sign(self, given: bytes) -> bool:
        text = given.lower().decode("latin-1")  # signs are ASCII, which is lowered much faster as bytes
        for letter, signs in self._signs:
            if letter in text:
                for sign in signs:
                    if sign in text:
                        return True
        if "%" not in text:
            return False
        return text[:1] not in "{[" or text.count("%") > _MOST_ENCODED or hides(text, self._shows_one)

    def _shows_one(self, text: str) -> bool:
        """Whether a text in lower case has a sign of a secret, or the admin key."""
        return any(sign in text for _, signs in self._signs for sign in signs) or (
            self._own != "" and self._own.lower() in text
        )

    def text(self, text: str) -> str:
        """A text, decoded from Latin-1, without the values of this server; none of it if they are percent-encoded."""
        found = shapeless(text.replace(self._own, REDACTED) if self._own else text)
        if "%" in found and (has_shape(found) or (self._own and hides(found, lambda text: self._own in text))):
            return REDACTED
        return found

    def query(self, query: str) -> str:
        """A query without the values of members that are secret; none of it if it has very many."""
        if query.count("&") >= _MOST_MEMBERS:
            return REDACTED
        return "&".join(self._member(member) for member in query.split("&"))

    def line(self, text: bytes) -> bytes:
        """A path or the value of a header, either of which may have a query, without secrets."""
        before, mark, query = text.decode("latin-1").partition("?")
        return (self.text(before) + mark + (self.query(query) if mark else "")).encode("latin-1")

    def _member(self, member: str) -> str:
        name, mark, _ = member.partition("=")
        if mark and hides(name, lambda text: text.lower() in self.names):
            return f"{name}={REDACTED}"
        return self.text(member)

    def without(self, *bodies: bytes | None) -> list[bytes | None]:
        """Messages that belong together without their secrets: what is one in one of them is not in another either.

        One that is no JSON and names a secret is left out as a whole; all are where they are too much to look through.
        """
        size = sum(len(body) for body in bodies if body)
        walk = _Walk(self.names, self.text)
        try:
            if any(len(body) > LARGEST for body in bodies if body):
                raise TooMuch
            stripped = [body and self._stripped(body, walk) for body in bodies]
        except TooMuch:
            return [body and LEFT_OUT for body in bodies]
        values = [orjson.dumps(value)[1:-1].decode() for value in sorted(walk.found) if len(value) >= _SHORTEST]
        if len(values) > _MOST or len(values) * size > _MOST_COMPARED:
            return [body and LEFT_OUT for body in bodies]
        if self._own:
            values += [self._own, orjson.dumps(self._own)[1:-1].decode()]
        return [body and _replaced(body, values) for body in stripped]

    def _stripped(self, body: bytes, walk: _Walk) -> bytes:
        try:
            value = orjson.loads(body)
        except ValueError:
            return LEFT_OUT if self._names_one(body.decode("latin-1")) else body
        return orjson.dumps(walk(value, DEEPEST))

    def _names_one(self, text: str) -> bool:
        """Whether a text that is no JSON names a secret, or hides values in escapes."""
        if self._own and self._own.replace("\\", "") in text.replace("\\", ""):
            return True
        named = ("\\u00", *self.names)
        return hides(text.lower(), lambda text: any(name in text for name in named)) or self.text(text) == REDACTED


class _Walk:
    """A walk through messages that belong together: takes the members of some names out of them."""

    def __init__(self, names: frozenset[str], text: Callable[[str], str]) -> None:
        """`text` takes secrets out of a text that is percent-encoded, such as a path that a refusal repeats."""
        self._names, self._text, self._left = names, text, MOST_VALUES
        self.found: set[str] = set()

    def __call__(self, node: Any, levels: int) -> Any:
        """A value without these members. Raises TooMuch."""
        if isinstance(node, dict | list):
            self._left -= 1 + len(node)
            if self._left < 0 or levels == 0:
                raise TooMuch
        if isinstance(node, list):
            return [self(item, levels - 1) for item in node]
        if isinstance(node, str) and "%" in node:
            return self._text(node)
        if not isinstance(node, dict):
            return node
        is_header = str(node.get("name")).lower() in SECRET_HEADERS if "value" in node else False
        return {
            self._text(name) if "%" in name else name: self._taken(member)
            if self._is_secret(name) or (is_header and name == "value")
            else self(member, levels - 1)
            for name, member in node.items()
        }

    def _is_secret(self, name: str) -> bool:
        if "%" in name:
            return hides(name, lambda text: text.lower() in self._names)
        return name.lower() in self._names

    def _taken(self, value: Any) -> Any:
        if isinstance(value, str):
            self.found.add(value)
        return value if value is None else REDACTED


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


# -- texts


def shapeless(text: str) -> str:
    """A text without private keys, signing keys and tokens of this server."""
    for pattern in _KEYS:
        text = pattern.sub(REDACTED, text)
    return _TOKEN.sub(lambda found: REDACTED if found[1] else found[0], text)


def has_shape(text: str) -> bool:
    """Whether a text has such a value, also percent-encoded."""
    return hides(text, lambda reading: shapeless(reading) != reading)


def hides(text: str, is_secret: Callable[[str], bool]) -> bool:
    """Whether a text is a secret as it stands, or percent-decoded once or several times.

    One that is still encoded after that counts as one too.
    """
    for _ in range(_MOST_READINGS):
        if is_secret(text):
            return True
        if "%" not in text or (decoded := unquote(text, "latin-1")) == text:
            return False
        text = decoded
    return True


def _replaced(body: bytes, values: list[str]) -> bytes:
    """A body without certain texts, nor their beginnings, which refusals repeat."""
    text = body.decode("utf-8", "surrogateescape")
    for value in values:
        text = _without(text, value)
    return shapeless(text).encode("utf-8", "surrogateescape")


def _without(text: str, value: str) -> str:
    """A text without every occurrence of the beginning of a value, each as far as they are equal."""
    pieces: list[str] = []
    done, at = 0, text.find(value[:_SHOWN])
    while at >= 0:
        pieces += (text[done:at], REDACTED)
        done = at + _equal(text, at, value)
        at = text.find(value[:_SHOWN], done)
    return "".join(pieces) + text[done:]


def _equal(text: str, at: int, value: str) -> int:
    """How many characters of a text, from a place on, are those that a value begins with."""
    end = min(_SHOWN, len(value))
    while end + _BLOCK <= len(value) and text[at + end : at + end + _BLOCK] == value[end : end + _BLOCK]:
        end += _BLOCK
    while end < len(value) and at + end < len(text) and text[at + end] == value[end]:
        end += 1
    return end
