"""Reads the headers of requests. A client sends the same ones again and again: they are read once."""

from __future__ import annotations

from ..calls.head import Head
from ..contract.redaction import REDACTED
from ..contract.secrets import SECRET_HEADERS, Secrets
from . import cors
from .as_of import AS_OF
from .errors import Headers
from .hosts import Hosts
from .simulation import DELAY, PREFER, SIMULATE

DELIVERY = b"webhook-id"
_ONCE = (b"host", b"origin", b"authorization")  # of two, this server and what stands before it may believe another one
_SPECIAL = frozenset((PREFER, SIMULATE, DELAY, AS_OF))
_SECRET = frozenset(name.encode() for name in SECRET_HEADERS)
_REDACTED = REDACTED.encode()
_MOST, _MOST_HEADERS, _LONGEST = 512, 40, 2_048  # heads that are remembered; headers and bytes of one


class Heads:
    """One per server."""

    def __init__(self, hosts: Hosts, secrets: Secrets) -> None:
        self._hosts, self._secrets = hosts, secrets
        self._known: dict[tuple[tuple[bytes, bytes], ...], Head] = {}

    def __call__(self, sent: Headers) -> Head:
        """The head with these headers; names are in lower case."""
        key = tuple(sent)
        return self._known.get(key) or self._read(key)

    def _read(self, sent: tuple[tuple[bytes, bytes], ...]) -> Head:
        by_name = dict(sent)
        origin, named = by_name.get(b"origin"), by_name.get(b"x-sandbox")
        repeated = None if len(by_name) == len(sent) else _repeated(sent)
        admitted = self._hosts.admits(by_name.get(b"host"))
        packed = _packed(sent)
        head = Head(
            by_name,
            None if named is None else named.decode("latin-1"),
            repeated,
            origin,
            origin is not None and not cors.is_local_origin(origin),
            repeated is None and admitted and DELIVERY not in by_name,
            not _SPECIAL.isdisjoint(by_name),
            by_name.get(b"content-encoding", b"").strip().lower() not in (b"", b"identity"),
            self._secrets.may_be_in(packed),
            packed,
        )
        # Of what was sent: a header that stands a thousand times is one by name.
        if len(sent) <= _MOST_HEADERS and sum([len(name) + len(value) for name, value in sent]) <= _LONGEST:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[sent] = head
        return head


def _repeated(sent: tuple[tuple[bytes, bytes], ...]) -> str | None:
    """The header that stands more than once and must not."""
    names = [name for name, _ in sent]
    return next((name.decode().title() for name in _ONCE if names.count(name) > 1), None)


def _packed(sent: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Headers as the journal keeps them: of one that stands twice the values together, credentials left out."""
    found: dict[bytes, bytes] = {}
    for name, value in sent:
        if name in _SECRET:
            found[name] = _REDACTED
        else:
            found[name] = found[name] + b", " + value if name in found else value
    return b"\n".join((*found, *found.values()))
