"""The headers of a request: read once for all that send the same ones, and kept without credentials."""

import pytest

from stub_server.contract.secrets import REDACTED, Secrets
from stub_server.http.access import Hosts
from stub_server.http.context import HeaderReader

Headers = list[tuple[bytes, bytes]]

HOST = (b"host", b"localhost:4600")
KEY = (b"authorization", b"Bearer sk_test_" + b"a" * 48)


def heads() -> HeaderReader:
    """Those of a server on loopback."""
    return HeaderReader(Hosts((), loopback=True), Secrets())


def test_the_same_headers_are_read_once() -> None:
    read = heads()
    assert read([HOST, KEY]) is read([HOST, KEY])
    assert read([HOST, KEY]) is not read([KEY, HOST])


def test_heads_of_long_ago_are_not_remembered() -> None:
    """Clients send ever new ones."""
    read = heads()
    first = read([HOST, KEY])
    for number in range(5_000):
        read([HOST, (b"idempotency-key", b"%d" % number)])
    assert first is not read([HOST, KEY])


@pytest.mark.parametrize(
    "further",
    [[(b"x-note", b"a" * 2_048)], [(b"x-note", b"a" * 1_000)] * 3, [(b"a", b"")] * 100],
    ids=["one long value", "the same long header again and again", "very many short ones"],
)
def test_a_large_head_is_not_remembered(further: Headers) -> None:
    read = heads()
    large = [HOST, *further]
    assert read(large).by_name == dict(large)
    assert read(large) is not read(large)


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ([HOST], True),
        ([HOST, (b"accept", b"a"), (b"accept", b"b")], True),
        ([HOST, HOST], False),
        ([(b"host", b"evil.example")], False),
        ([HOST, (b"webhook-id", b"evt_1")], False),
    ],
)
def test_what_is_to_be_looked_at_is_not_ordinary(sent: Headers, told: bool) -> None:
    assert told == heads()(sent).needs_no_checks


def test_a_page_of_another_machine_is_foreign() -> None:
    assert heads()([HOST, (b"origin", b"https://evil.example")]).is_foreign
    assert not heads()([HOST, (b"origin", b"http://localhost:3000")]).is_foreign
    assert not heads()([HOST]).is_foreign


@pytest.mark.parametrize("name", [b"prefer", b"x-sandbox-simulate", b"x-sandbox-delay", b"x-sandbox-as-of"])
def test_a_wish_is_special(name: bytes) -> None:
    assert heads()([HOST, (name, b"1")]).is_special
    assert not heads()([HOST, (b"x-other", b"1")]).is_special


def test_the_journal_keeps_no_credential_and_joins_what_stands_twice() -> None:
    packed = heads()([HOST, KEY, (b"accept", b"a"), (b"cookie", b"session=1"), (b"accept", b"b")]).packed
    redacted = REDACTED.encode()
    assert b"\n".join((b"host", b"authorization", b"accept", b"cookie", HOST[1], redacted, b"a, b", redacted)) == packed


def test_what_may_hold_a_secret_is_suspect() -> None:
    assert heads()([HOST, (b"referer", b"http://localhost/?token=1")]).is_suspect
    assert not heads()([HOST, KEY]).is_suspect
