"""Reads the headers of requests. A client sends the same ones again and again: they are read once."""

from __future__ import annotations

from collections.abc import Iterable

from ..calls.call import MOST_WARNINGS, Head
from ..contract.redaction import REDACTED
from ..contract.secrets import SECRET_HEADERS, Secrets
from ..kernel.text import nearest, warning_of
from .access import is_local_origin
from .fault_injection import DELAY, PREFER, SIMULATE
from .hosts import DELIVERY, Hosts
from .refusals import Headers
from .time_travel import AS_OF

# Headers that decide what happens. Of two, this server and a proxy before it might each believe another one.
_ONCE = frozenset(
    (
        b"host", b"origin", b"authorization", b"content-type", b"transfer-encoding", b"idempotency-key",
        b"sec-fetch-site", b"webhook-id",
    )
)  # fmt: skip
_OURS = b"x-sandbox"
_KNOWN = ("", "-admin-key", "-as-of", "-client-ip", "-control-key", "-delay", "-simulate")
_SPECIAL = frozenset((PREFER, SIMULATE, DELAY, AS_OF))
_SECRET = frozenset(name.encode() for name in SECRET_HEADERS)
_REDACTED = REDACTED.encode()
_MOST, _MOST_HEADERS, _LONGEST = 512, 40, 2_048  # heads that are remembered; headers and bytes of one


class HeaderReader:
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
        admitted, has_host = self._hosts.admits(by_name.get(b"host")), b"host" in by_name
        coding = by_name.get(b"transfer-encoding", b"chunked").strip().lower()
        packed = _packed(sent)
        head = Head(
            by_name,
            None if named is None else named.decode("latin-1"),
            repeated,
            has_host,
            b"" if coding == b"chunked" else coding,
            (*(("if_match_ignored",) if b"if-match" in by_name else ()), *_unknown(by_name)),
            origin,
            origin is not None and not is_local_origin(origin),
            repeated is None and admitted and has_host and coding == b"chunked" and DELIVERY not in by_name,
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
    twice = (name for name in names if (name in _ONCE or name.startswith(_OURS)) and names.count(name) > 1)
    return next((name.decode("latin-1").title() for name in twice), None)


def _unknown(names: Iterable[bytes]) -> Iterable[str]:
    """Warnings of X-Sandbox headers that this server does not know, which may be misspelt."""
    ours = [name[len(_OURS) :].decode("latin-1") for name in names if name.startswith(_OURS)]
    for name in [name for name in ours if name not in _KNOWN][:MOST_WARNINGS]:
        meant = nearest(name, _KNOWN)
        yield warning_of("unknown_sandbox_header", f"x-sandbox{name}", meant and f"x-sandbox{meant}")


def _packed(sent: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Headers as the journal keeps them: of one that stands twice the values together, credentials left out."""
    found: dict[bytes, bytes] = {}
    for name, value in sent:
        if name in _SECRET:
            found[name] = _REDACTED
        else:
            found[name] = found[name] + b", " + value if name in found else value
    return b"\n".join((*found, *found.values()))
