"""Removes secrets from what is kept and shown: request lines, headers, bodies and texts.

Most of it has none. So `suspects` and `suspects_line` are asked first: they look for names and
beginnings of secrets, take about a microsecond, and are right whenever they say no. Where they say
yes, `line`, `query`, `text` and `messages` search with expressions, in time linear in the text:

- a secret member or header by its name, in JSON, queries and forms. `messages` removes its value
  wherever else the messages repeat it, cut short or whole;
- a token of this server by its form, and a text of the server's operator as it is.

What is percent-encoded once or escaped as JSON is decoded to be searched. If that shows a secret,
or a further name of one, the text is left out as a whole.

Texts are bytes of HTTP decoded from Latin-1: one character is one byte.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from itertools import chain
from os.path import commonprefix
from urllib.parse import unquote

import orjson

from .document import Document
from .secrets import LEFT_OUT, REDACTED, SECRET_HEADERS, TOKENS, carriers, secret_members

LARGEST = 262_144  # bytes of a message that is searched
_MOST_ENCODED = 4_000  # percent signs of a text that is decoded
_MOST_REPEATED = 50  # secrets of messages that are looked for in the whole of them
_SHORTEST, _LONGEST = 8, 1_000  # characters of each of those
_SHORTEST_OWN = 4  # characters of a text of the operator that is a secret
_SHOWN = 12  # characters by which a secret that is cut short is known
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([a-z0-9._:-]+)")
_LIKE_ASCII = frozenset(
    (b"utf-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1", b"latin1", b"windows-1252")
)
_ESCAPED = re.compile(r"\\u00([0-7][0-9A-Fa-f])")
_TEXT = r'"((?:[^"\\]++|\\.)*+)'  # of JSON, which may be cut off


class Redactor:
    """Removes the secrets of some contracts and of one server."""

    def __init__(
        self,
        *documents: Document,
        own: Iterable[bytes | None] = (),
        further_names: Iterable[str] = (),
    ) -> None:
        """`own` are texts that the operator gave the server, removed wherever they occur.

        `further_names` are members of another system that are secret there, in lower case.
        """
        self._documents, self._further_names = documents, tuple(further_names)
        self._own: list[str] = []
        for secret in own:
            if secret is not None and len(secret) >= _SHORTEST_OWN:
                self._own += _spellings(secret.decode("latin-1"))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of secret members and headers, in lower case."""
        marked = chain.from_iterable(map(secret_members, self._documents))
        return frozenset((*SECRET_HEADERS, *self._further_names, *marked))

    @cached_property
    def operations(self) -> frozenset[str]:
        """The ids of operations whose requests or answers may have secrets."""
        return frozenset(chain.from_iterable(map(carriers, self._documents)))

    # -- whether there may be secrets

    @cached_property
    def _line_signs(self) -> tuple[str, ...]:
        return ("?", "%", *TOKENS, *self._own)

    @cached_property
    def _signs(self) -> tuple[str, ...]:
        return tuple(sign.lower() for sign in (*TOKENS, *self._own, *sorted(self.names)))

    def suspects_line(self, line: str) -> bool:
        """Whether a path or the value of a header may have a secret."""
        return _has(line, self._line_signs)

    def suspects(self, body: bytes) -> bool:
        """Whether a body or a query may have a secret."""
        if len(body) > LARGEST:
            return True
        # signs are ASCII, which is lowered much faster as bytes
        text = body.lower().decode("latin-1")
        return _has(text, self._signs) or _hides(text, self._has_sign)

    def kept(self, body: bytes, headers: Mapping[bytes, bytes]) -> tuple[bytes | None, bool]:
        """What is kept of a body, and whether it may have a secret.

        None is found in a charset such as UTF-16; of several that are named any may be meant.
        """
        kept, media = body or None, headers.get(b"content-type", b"")
        if body and not _LIKE_ASCII.issuperset(_CHARSET.findall(media.lower())):
            kept = LEFT_OUT
        return kept, self.suspects(body)

    def _has_sign(self, text: str) -> bool:
        return _has(text.lower(), self._signs)

    # -- texts without them

    def text(self, text: str, further: Iterable[str] = ()) -> str:
        """A text without tokens, texts of the operator and `further` secrets; none of it if it
        hides one.
        """
        found = self._without_values(text, further)
        return REDACTED if _hides(found, partial(self._is_revealed, found, further)) else found

    def _without_values(self, text: str, further: Iterable[str] = ()) -> str:
        for value in (*further, *self._own):
            text = _without(text, value)
        for begins, token in TOKENS.items():
            if begins in text:
                text = token.sub(REDACTED, text)
        return text

    def _is_revealed(self, text: str, further: Iterable[str], decoded: str) -> bool:
        """Whether a text has a secret once it is decoded, or more names of secrets than before."""
        if self._without_values(decoded, further) != decoded:
            return True
        before, after = text.lower(), decoded.lower()
        return any(after.count(name) > before.count(name) for name in self.names)

    def query(self, query: str, further: Iterable[str] = ()) -> str:
        """A query without the values of secret members and `further` secrets."""
        return self.text(self._query.sub(rf"\1{REDACTED}", query), further)

    def line(self, text: bytes, further: Iterable[str] = ()) -> bytes:
        """A path or the value of a header, either of which may have a query, without secrets."""
        before, mark, query = text.decode("latin-1").partition("?")
        return (self.text(before, further) + mark + self.query(query, further)).encode("latin-1")

    def messages(self, *bodies: bytes | None, further: Iterable[str] = ()) -> list[bytes | None]:
        """Bodies that belong together, such as those of a request and its answer: a secret of one
        is removed from the others too, and `further` ones.

        All are left out as a whole if one is too large to be searched, or they have very many
        secrets.
        """
        secrets: set[str] = set()
        texts = []
        for body in bodies:
            if body and len(body) > LARGEST:
                return _left_out(bodies)
            texts.append(self._without_members((body or b"").decode("latin-1"), secrets))
        repeated = [secret[:_LONGEST] for secret in sorted(secrets) if len(secret) >= _SHORTEST]
        repeated += further
        if len(repeated) > _MOST_REPEATED:
            return _left_out(bodies)
        found: list[bytes | None] = []
        for body, text in zip(bodies, texts, strict=True):
            found.append(body and self.text(text, repeated).encode("latin-1"))
        return found

    def _without_members(self, text: str, secrets: set[str]) -> str:
        """A body, JSON or a form, without the values of secret members; those of JSON are added to
        `secrets`.
        """

        def hidden(member: re.Match[str]) -> str:
            before, secret = member.groups()
            if secret != REDACTED:
                secrets.add(secret)
            return f'{before}"{REDACTED}'

        for pattern in self._members:
            text = pattern.sub(hidden, text)
        return self._query.sub(rf"\1{REDACTED}", text)

    @cached_property
    def _members(self) -> tuple[re.Pattern[str], ...]:
        """What comes before a secret in JSON, and the secret: of a member, of a webhook's header
        after its name, and of one before its name.
        """
        name_of_header = rf'"name"\s*+:\s*+"{_one_of(SECRET_HEADERS)}"'
        # members that the contract does not know may stand between them
        between = r'(?:[^"{}]++|"(?:[^"\\]++|\\.)*+"|{[^{}]*+}){1,16}?'
        flags = re.IGNORECASE | re.DOTALL
        return (
            re.compile(rf'("{_one_of(self.names)}"\s*+:\s*+){_TEXT}', flags),
            re.compile(rf'({name_of_header}{between}"value"\s*+:\s*+){_TEXT}', flags),
            re.compile(rf'("value"\s*+:\s*+){_TEXT}(?="{between}{name_of_header})', flags),
        )

    @cached_property
    def _query(self) -> re.Pattern[str]:
        """A secret member of a query or a form."""
        return re.compile(rf"((?:^|&){_one_of(self.names)}=)[^&]*+", re.IGNORECASE)


def _spellings(secret: str) -> list[str]:
    """A text of the operator as it is, as JSON has it, and as names of headers come."""
    escaped = orjson.dumps(secret)[1:-1].decode("latin-1")
    return list(dict.fromkeys((secret, escaped, secret.lower())))


def _left_out(bodies: Iterable[bytes | None]) -> list[bytes | None]:
    """`LEFT_OUT` in place of each body that is not empty."""
    return [body and LEFT_OUT for body in bodies]


def _one_of(names: Iterable[str]) -> str:
    """The part of a pattern that matches one of these names."""
    return f"(?:{'|'.join(map(re.escape, sorted(names)))})"


def _has(text: str, signs: Iterable[str]) -> bool:
    for sign in signs:  # noqa: SIM110 - of every request, and a generator would take twice the time
        if sign in text:
            return True
    return False


def _hides(text: str, has_secret: Callable[[str], bool]) -> bool:
    """Whether a text has a secret once it is decoded; one with very many signs is taken for one
    that has.
    """
    if "%" not in text and "\\" not in text:
        return False
    return text.count("%") > _MOST_ENCODED or has_secret(_decoded(text))


def _decoded(text: str) -> str:
    """A text, percent-decoded once and without escapes of JSON.

    Some libraries write `=` as `\\u003d` and `/` as `\\/`.
    """
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
