"""Secrets in messages: which operations carry some, by the contract, and messages and texts without them.

A text has one where something looks like a key or token of this server. Every search takes time linear in the text.
Begin with `Secrets`: `suspects` is asked of every request, `without` removes what is found.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from os.path import commonprefix
from typing import Any
from urllib.parse import unquote

import orjson

from ..kernel.record import has_more_values, is_deeper_than
from .document import Document
from .source import Json, nodes

REDACTED = "[redacted]"
LEFT_OUT = REDACTED.encode()
"""Replaces a body that is left out as a whole."""
SECRET_HEADERS = (
    "authorization", "x-sandbox-admin-key", "x-sandbox-control-key", "cookie", "proxy-authorization", "x-api-key",
    "api-key", "x-auth-token",
)  # fmt: skip
MARK = "x-secret"
LARGEST, MOST_VALUES, DEEPEST = 32_768, 4_000, 200  # bytes, values and levels of messages that are searched
LARGEST_SEARCHED = 262_144  # bytes of a body in which signs of a secret are searched for
_NO_SCHEMAS = frozenset(("examples", "example", "links", "description"))
_ALWAYS = frozenset(
    (*SECRET_HEADERS, "admin_key", "control_key", "private_key", "signing_key", "password", "token", "jwt")
)
_MOST = 50  # secrets of a message that are looked for in others
_MOST_COMPARED = 2_097_152  # bytes of messages, times the secrets that are looked for in them
_SHORTEST = 8  # characters of a secret that is also looked for in other texts
_SHORTEST_ADMIN_KEY = 4
_MOST_ENCODED = 4_000  # percent signs of a body that is read percent-decoded
_MOST_MEMBERS = 50  # of a query that is searched
# What every secret in a body has, in lower case: a name, the look of a value, or letters written as escapes.
_STEMS = ("_key", "-key", "authorization", "cookie", "password", "token", "jwt")
_VALUES = ("sk_", "whsec_", "eyj")
_RARE = "\\zjxqwkvh_"
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([a-z0-9._:-]+)")
_LIKE_ASCII = frozenset((b"utf-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1", b"latin1", b"windows-1252"))
_SHOWN = 12  # characters of a secret that identify it: refusals repeat values cut short
_NOT_JSON = object()
_MOST_READINGS = 8  # of a text that is percent-encoded again and again
# Each begins with letters that are found fast, and reads what follows without going back.
_KEYS = re.compile(r"sk_(?<![A-Za-z0-9]sk_)[a-z]++_[A-Za-z0-9]{6,}+|whsec_(?<![A-Za-z0-9]whsec_)[A-Za-z0-9+/=]{6,}+")
# Reads the whole word also where it is no token: the search continues behind it, not in it.
_TOKEN = re.compile(r"eyJ[\w-]*+(\.[\w-]++\.[\w-]*+)?", re.ASCII)


class Secrets:
    """The secrets of some contracts: members that are marked `x-secret`, and headers that carry credentials."""

    def __init__(self, *documents: Document, admin_key: bytes | None = None) -> None:
        """`admin_key` is the server's, removed wherever it occurs."""
        self._documents = documents
        self._own = "" if admin_key is None or len(admin_key) < _SHORTEST_ADMIN_KEY else admin_key.decode("latin-1")

    @cached_property
    def names(self) -> frozenset[str]:
        """Members that are secret wherever they occur, in lower case."""
        found = (entry for document in self._documents for entry in nodes(document.raw["components"]))
        marked = (at for at, node in found if isinstance(node, dict) and node.get(MARK) is True)
        return _ALWAYS.union(str(at[-1]).lower() for at in marked if at[-2] == "properties")

    @cached_property
    def operations(self) -> frozenset[str]:
        """The ids of operations whose requests or answers have secrets, or headers that may be some."""
        return frozenset(ident for document in self._documents for ident in _carriers(document))

    @cached_property
    def _signs(self) -> Mapping[str, Sequence[str]]:
        """What a body has, in lower case, that names a secret or looks like one, by the rarest letter in it."""
        # An escape may stand for a part of the admin key.
        own = ("\\", self._own.lower()) if self._own else ("\\u00",)
        found: defaultdict[str, list[str]] = defaultdict(list)
        for sign in (*own, *_VALUES, *_STEMS, *(n for n in self.names if not any(stem in n for stem in _STEMS))):
            found[next((letter for letter in _RARE if letter in sign), sign[0])].append(sign)
        return found

    def suspects(self, path: str, query: bytes, body: bytes) -> bool:
        """Whether a request may have a secret besides its headers: fast, and too often rather than too seldom."""
        return (
            len(body) > LARGEST_SEARCHED
            or self.may_be_in(path)
            or (query != b"" and (b"%" in query or self._has_sign(query)))
            or (body != b"" and self._has_sign(body))
        )

    def suspects_encoded(self, media: bytes, body: bytes) -> bool:
        """Whether a body is in a charset in which secrets are not found."""
        declared = _CHARSET.search(media.lower())
        return body != b"" and declared is not None and declared[1] not in _LIKE_ASCII

    def may_be_in(self, text: str) -> bool:
        """Whether headers or a path may have a secret: true too often rather than too seldom."""
        is_usual = "?" not in text and "%" not in text and "sk_" not in text and "whsec_" not in text
        return not is_usual or "eyJ" in text or (self._own != "" and self._own in text)

    def _has_sign(self, given: bytes) -> bool:
        text = given.lower().decode("latin-1")  # signs are ASCII, which is lowered much faster as bytes
        if self._shows_one(text):
            return True
        if "%" not in text:
            return False
        is_decoded = text[:1] in "{[" and text.count("%") <= _MOST_ENCODED
        return not is_decoded or hides(text, lambda reading: self._shows_one(reading.lower()))

    def _shows_one(self, text: str) -> bool:
        for letter, signs in self._signs.items():  # asked of every body, and a letter is found at once
            if letter in text:
                for sign in signs:
                    if sign in text:
                        return True
        return False

    def _plain(self, text: str) -> str:
        return shapeless(text.replace(self._own, REDACTED) if self._own else text)

    def text(self, text: str) -> str:
        """A text, decoded from Latin-1, without the values of this server; none of it if they are percent-encoded."""
        found = self._plain(text)
        return REDACTED if "%" in found and hides(found, lambda reading: self._plain(reading) != reading) else found

    def query(self, query: str) -> str:
        """A query without the values of members that are secret; none of it if it has very many."""
        if query.count("&") >= _MOST_MEMBERS:
            return REDACTED
        return "&".join(self._member(member) for member in query.split("&"))

    def _member(self, member: str) -> str:
        name, mark, _ = member.partition("=")
        return f"{name}={REDACTED}" if mark and self.is_secret(name) else self.text(member)

    def is_secret(self, name: str) -> bool:
        """Whether a name, perhaps percent-encoded, is that of a secret member."""
        return hides(name, lambda reading: reading.lower() in self.names)

    def line(self, text: bytes) -> bytes:
        """A path or the value of a header, either of which may have a query, without secrets."""
        before, mark, query = text.decode("latin-1").partition("?")
        return (self.text(before) + mark + (self.query(query) if mark else "")).encode("latin-1")

    def without(self, *bodies: bytes | None) -> list[bytes | None]:
        """Messages that belong together without their secrets: a secret of one is removed from the others too.

        One that is no JSON and names a secret is left out as a whole; all are where they are too much to search.
        """
        size, found = sum(len(body) for body in bodies if body), set[str]()
        if any(len(body) > LARGEST for body in bodies if body):
            return [body and LEFT_OUT for body in bodies]
        read = [_read(body) for body in bodies]
        if has_more_values(read, MOST_VALUES) or is_deeper_than(read, DEEPEST):
            return [body and LEFT_OUT for body in bodies]
        stripped = [body and self._stripped(body, value, found) for body, value in zip(bodies, read, strict=True)]
        values = [orjson.dumps(value)[1:-1].decode() for value in sorted(found) if len(value) >= _SHORTEST]
        if len(values) > _MOST or len(values) * size > _MOST_COMPARED:
            return [body and LEFT_OUT for body in bodies]
        if self._own:
            values += [self._own, orjson.dumps(self._own)[1:-1].decode()]
        return [body and _replaced(body, values) for body in stripped]

    def _stripped(self, body: bytes, value: Any, found: set[str]) -> bytes:
        if value is _NOT_JSON:
            return LEFT_OUT if self._names_one(body.decode("latin-1")) else body
        return orjson.dumps(self._without_members(value, found))

    def _without_members(self, node: Any, found: set[str]) -> Any:
        """A value without the values of secret members, which are added to those that were found.

        It also removes secrets from texts that are percent-encoded, such as a path that a refusal repeats.
        """
        if isinstance(node, list):
            return [self._without_members(item, found) for item in node]
        if not isinstance(node, dict):
            return self.text(node) if isinstance(node, str) and "%" in node else node
        is_header = "value" in node and str(node.get("name")).lower() in SECRET_HEADERS
        stripped = {}
        for name, member in node.items():
            if self.is_secret(name) or (is_header and name == "value"):
                found |= {member} if isinstance(member, str) else set()
                member = None if member is None else REDACTED
            else:
                member = self._without_members(member, found)
            stripped[self.text(name) if "%" in name else name] = member
        return stripped

    def _names_one(self, text: str) -> bool:
        """Whether a text that is no JSON names a secret, or hides values in escapes."""
        if self._own and self._own.replace("\\", "") in text.replace("\\", ""):
            return True
        named = ("\\u00", *self.names)
        return hides(text.lower(), lambda reading: any(name in reading for name in named)) or (
            self.text(text) == REDACTED
        )


def _read(body: bytes | None) -> Any:
    try:
        return orjson.loads(body or b"null")
    except ValueError:
        return _NOT_JSON


def _carriers(document: Document) -> Iterator[str]:
    """The operations from which a mark can be reached."""
    components = document.raw["components"].items()
    named = {f"#/components/{kind}/{name}": node for kind, nodes in components for name, node in nodes.items()}
    outgoing = {place: set(_found(node)) for place, node in named.items()}
    carrying = {MARK}
    while more := {place for place, found in outgoing.items() if found & carrying} - carrying:
        carrying |= more
    return (operation.id for operation in document.operations.values() if carrying & set(_found(operation.raw)))


def _found(part: Json) -> Iterator[str]:
    """The references in a part of a contract, and the mark if it has one."""
    for _, node in nodes(part, _NO_SCHEMAS):
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield "/".join(node["$ref"].split("/")[:4])
            if MARK in node:
                yield MARK


# -- texts


def shapeless(text: str) -> str:
    """A text without private keys, signing keys and tokens of this server."""
    return _TOKEN.sub(lambda found: REDACTED if found[1] else found[0], _KEYS.sub(REDACTED, text))


def hides(text: str, is_secret: Callable[[str], bool]) -> bool:
    """Whether a text is a secret as it is, or percent-decoded once or several times.

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
        done = at + len(commonprefix([text[at : at + len(value)], value]))  # noqa: RUF071 - characters are compared
        at = text.find(value[:_SHOWN], done)
    return "".join(pieces) + text[done:]
