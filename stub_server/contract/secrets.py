"""Secrets in messages: which operations carry some, by the contract, and messages and texts without
them.

Known are members that the contract marks, headers that carry credentials, the forms of this
server's own tokens, and the texts that its operator gave it. Secrets of other systems in free text
are not. Every search takes time linear in the text. Begin with `Secrets`: `suspects_line` is asked
of every request, `without` removes what is found.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from os.path import commonprefix
from urllib.parse import unquote

import orjson

from .document import Document
from .source import Json, nodes

REDACTED = "[redacted]"
LEFT_OUT = REDACTED.encode()
"""Replaces a body that is left out as a whole."""
KEY_HEADERS = ("x-sandbox-admin-key", "x-sandbox-control-key")
"""The headers of the admin key and of a sandbox's own key."""
SECRET_HEADERS = (
    "authorization",
    *KEY_HEADERS,
    "cookie",
    "proxy-authorization",
    "x-api-key",
    "api-key",
    "x-auth-token",
)
FORMS = (
    ("sk_sandbox_", "[0-9A-Za-z]{8,40}"),  # private keys
    ("sk_control_", "[0-9a-f]{8,48}"),  # control keys
    ("sk_pay_", "[0-9a-f]{8,32}"),  # links to pages of payers
    ("whsec_", "[0-9A-Za-z+/]{8,43}=?"),  # signing keys
    # JWTs, by their header
    ("eyJ0eXAiOiJhdCtqd3QiLCJhbGciOiJIUzI1NiJ9.", r"[\w-]++(?:\.[\w-]{0,43})?"),
)
"""The tokens of this server: how each begins, and what follows, up to its length: refusals repeat
values cut short.
"""
MARK = "x-secret"
LARGEST = 262_144  # bytes of messages that are searched
_NO_SCHEMAS = frozenset(("examples", "example", "links", "description"))
# secrets of a message that are looked for in others, and characters of each
_MOST, _LONGEST = 50, 1_000
_SHORTEST = 8  # characters of a secret that is also looked for in other texts
_SHOWN = 12  # characters of a secret that identify it: refusals repeat values cut short
_SHORTEST_OWN = 4
_MOST_ENCODED = 4_000  # percent signs of a text that is read percent-decoded
# of which most names of secrets have one
_STEMS = ("_key", "-key", "authorization", "cookie", "token", "jwt")
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([a-z0-9._:-]+)")
_LIKE_ASCII = frozenset(
    (b"utf-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1", b"latin1", b"windows-1252")
)
_BEGINNINGS = tuple(begins for begins, _ in FORMS)
# each found by its beginning
_TOKENS = tuple(re.compile(re.escape(begins) + rest, re.ASCII) for begins, rest in FORMS)
_ESCAPED = re.compile(r"\\u00([0-7][0-9A-Fa-f])")
_REST = r'(?:[^"\\]++|\\.)*+'  # of a text in JSON, which may be cut off


class Secrets:
    """The secrets of some contracts and of a server."""

    def __init__(
        self,
        *documents: Document,
        own: Iterable[bytes | None] = (),
        further_names: Iterable[str] = (),
    ) -> None:
        """`own` are texts that the operator gave the server, removed as they are wherever they
        occur.

        `further_names` are members of another system that are secret there, in lower case.
        """
        self._documents, self._further_names = documents, tuple(further_names)
        found: list[str] = []
        for secret in own:
            if secret is not None and len(secret) >= _SHORTEST_OWN:
                text = secret.decode("latin-1")
                found.append(text)
                found.append(orjson.dumps(text)[1:-1].decode("latin-1"))
                found.append(text.lower())  # as names of headers come
        self._own = list(dict.fromkeys(found))

    @cached_property
    def _line_signs(self) -> tuple[str, ...]:
        """What a path or the value of a header has that names a secret or is one."""
        return ("?", "%", *_BEGINNINGS, *self._own)

    @cached_property
    def names(self) -> frozenset[str]:
        """Members that are secret wherever they occur, in lower case."""
        found = {*SECRET_HEADERS, *self._further_names}
        for document in self._documents:
            for at, node in nodes(document.raw["components"]):
                if isinstance(node, dict) and node.get(MARK) is True and at[-2] == "properties":
                    found.add(str(at[-1]).lower())
        return frozenset(found)

    @cached_property
    def operations(self) -> frozenset[str]:
        """The ids of operations whose requests or answers have secrets, or headers that
        may be some.
        """
        return frozenset(chain.from_iterable(map(_carriers, self._documents)))

    @cached_property
    def _signs(self) -> tuple[str, ...]:
        """What a body has, in lower case, that names a secret or is one."""
        named = [name for name in self.names if not _has(name, _STEMS)]
        return tuple(sign.lower() for sign in (*_BEGINNINGS, *self._own, *_STEMS, *named))

    @cached_property
    def _members(self) -> tuple[re.Pattern[str], ...]:
        """Secret members as JSON has them, and headers of webhooks; what is removed is
        the second group.
        """
        value, comma = rf'"({_REST})', r"\s*+,\s*+"
        is_header = rf'"name"\s*+:\s*+"{_one_of(SECRET_HEADERS)}"'
        flags = re.IGNORECASE | re.DOTALL
        return (
            re.compile(rf'("{_one_of(self.names)}"\s*+:\s*+){value}()', flags),
            re.compile(rf'({is_header}{comma}"value"\s*+:\s*+){value}()', flags),
            re.compile(rf'("value"\s*+:\s*+){value}("{comma}{is_header})', flags),
        )

    @cached_property
    def _query(self) -> re.Pattern[str]:
        """Secret members of queries and forms."""
        return re.compile(rf"((?:^|&){_one_of(self.names)}=)[^&]*+", re.IGNORECASE)

    def suspects_line(self, line: str, query: bytes) -> bool:
        """Whether a path or headers, or a query, may have a secret.

        It is fast, and true rather too often.
        """
        return _has(line, self._line_signs) or (query != b"" and self.suspects(query))

    def suspects(self, body: bytes) -> bool:
        """Whether a body or a query may have a secret. It is fast, and true rather too often."""
        if len(body) > LARGEST:
            return True
        # signs are ASCII, which is lowered much faster as bytes
        text = body.lower().decode("latin-1")
        if _has(text, self._signs):
            return True
        if "%" not in text and "\\" not in text:
            return False
        decoded = _decoded(text)
        return decoded is None or _has(decoded, self._signs)

    def suspects_encoded(self, media: bytes, body: bytes) -> bool:
        """Whether a body is in a charset in which secrets are not found. Of several that are named
        any may be meant.
        """
        return body != b"" and not _LIKE_ASCII.issuperset(_CHARSET.findall(media.lower()))

    def _plain(self, text: str) -> str:
        for own in self._own:
            text = text.replace(own, REDACTED)
        return shapeless(text)

    def _hides(self, text: str) -> bool:
        """Whether a text has a token or a text of the operator once it is decoded."""
        if "%" not in text and "\\" not in text:
            return False
        decoded = _decoded(text)
        return decoded is None or self._plain(decoded) != decoded

    def text(self, text: str) -> str:
        """A text, decoded from Latin-1, without the values of this server; none of it if
        they are encoded.
        """
        found = self._plain(text)
        return REDACTED if self._hides(found) else found

    def query(self, query: str) -> str:
        """A query without the values of members that are secret."""
        return self.text(self._query.sub(rf"\1{REDACTED}", query))

    def line(self, text: bytes) -> bytes:
        """A path or the value of a header, either of which may have a query, without secrets."""
        before, mark, query = text.decode("latin-1").partition("?")
        return (self.text(before) + mark + self.query(query)).encode("latin-1")

    def without(self, *bodies: bytes | None) -> list[bytes | None]:
        """Messages that belong together without their secrets: a secret of one is removed from the
        others too.

        One with a secret that is percent-encoded or escaped is left out as a whole; all are if one
        is too large.
        """
        found = set[str]()
        texts = []
        for body in bodies:
            if body and len(body) > LARGEST:
                return _left_out(bodies)
            texts.append(self._without_members((body or b"").decode("latin-1"), found))
        values = [value[:_LONGEST] for value in sorted(found) if len(value) >= _SHORTEST]
        if len(values) > _MOST:
            return _left_out(bodies)
        stripped = []
        for body, text in zip(bodies, texts, strict=True):
            stripped.append(body and self._replaced(text, values))
        return stripped

    def _without_members(self, text: str, found: set[str]) -> str:
        """A body, JSON or a form, without the values of secret members, which are added to those
        that were found.
        """

        def hidden(member: re.Match[str]) -> str:
            if member[2] != REDACTED:
                found.add(member[2])
            return f'{member[1]}"{REDACTED}{member[3]}'

        for pattern in self._members:
            text = pattern.sub(hidden, text)
        return self._query.sub(rf"\1{REDACTED}", text)

    def _replaced(self, text: str, values: Iterable[str]) -> bytes:
        """A body without certain texts, nor their beginnings, which refusals repeat."""
        for value in (*values, *self._own):
            text = _without(text, value)
        text = shapeless(text)
        return LEFT_OUT if self._hides(text) else text.encode("latin-1")


def _left_out(bodies: Iterable[bytes | None]) -> list[bytes | None]:
    """Messages of which each that has a body is left out as a whole."""
    return [body and LEFT_OUT for body in bodies]


def _one_of(names: Iterable[str]) -> str:
    """The part of a pattern that matches one of these names."""
    return f"(?:{'|'.join(map(re.escape, sorted(names)))})"


def _carriers(document: Document) -> Iterator[str]:
    """The operations from which a mark can be reached."""
    outgoing = {}
    for kind, components in document.raw["components"].items():
        for name, node in components.items():
            outgoing[f"#/components/{kind}/{name}"] = set(_found(node))
    carrying, known = {MARK}, 0
    while len(carrying) > known:
        known = len(carrying)
        for place, found in outgoing.items():
            if found & carrying:
                carrying.add(place)
    for operation in document.operations.values():
        if not carrying.isdisjoint(_found(operation.raw)):
            yield operation.id


def _found(part: Json) -> Iterator[str]:
    """The references in a part of a contract, and the mark if it has one."""
    for _, node in nodes(part, _NO_SCHEMAS):
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield "/".join(node["$ref"].split("/")[:4])
            if MARK in node:
                yield MARK


# -- texts


def _has(text: str, signs: Iterable[str]) -> bool:
    for sign in signs:  # noqa: SIM110 - of every request, and a generator would take twice the time
        if sign in text:
            return True
    return False


def shapeless(text: str) -> str:
    """A text without private keys, signing keys and tokens of this server."""
    for begins, token in zip(_BEGINNINGS, _TOKENS, strict=True):
        if begins in text:
            text = token.sub(REDACTED, text)
    return text


def _decoded(text: str) -> str | None:
    """A text, percent-decoded once and without escapes of JSON; None if it has too many signs for
    that.

    Some libraries write `=` as `\\u003d` and `/` as `\\/`.
    """
    if text.count("%") > _MOST_ENCODED:
        return None
    text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), unquote(text, "latin-1"))
    return text.replace("\\/", "/")


def _without(text: str, value: str) -> str:
    """A text without every occurrence of the beginning of a value, each as far as
    they are equal.
    """
    pieces: list[str] = []
    done, at = 0, text.find(value[:_SHOWN])
    while at >= 0:
        pieces += (text[done:at], REDACTED)
        # characters are compared
        done = at + len(commonprefix([text[at : at + len(value)], value]))  # noqa: RUF071
        at = text.find(value[:_SHOWN], done)
    return "".join(pieces) + text[done:]
