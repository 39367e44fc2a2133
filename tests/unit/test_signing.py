"""Signatures are those of Standard Webhooks 1.0, and rotating a key leaves no gap."""

import base64

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from stub_server.core.clock import LATEST, wall_ms
from stub_server.core.signing import new_key, sign, signatures
from stub_server.domain.webhooks import rotated, valid_keys

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'


def test_the_published_vector() -> None:
    """The specification's own example signs to the published value."""
    made = sign(KEY, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, BODY)
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_new_key_holds_its_bytes() -> None:
    """A key is the prefix and the base64 form of the bytes."""
    key = new_key(bytes(range(32)))
    assert key.startswith("whsec_")
    assert base64.b64decode(key[6:]) == bytes(range(32))


@given(secret=st.binary(min_size=24, max_size=64), text=st.text(st.characters(codec="utf-8")))
def test_the_reference_library_accepts_ours(secret: bytes, text: str) -> None:
    """Whatever the key and the body, the independent verifier accepts the signature, for
    no other body.
    """
    key, now, body = new_key(secret), wall_ms() // 1000, orjson.dumps({"text": text})
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(now),
        "webhook-signature": sign(key, "evt_1", now, body),
    }
    assert Webhook(key).verify(body.decode(), headers) == {"text": text}
    with pytest.raises(WebhookVerificationError):
        Webhook(key).verify(body.decode() + " ", headers)


def test_each_key_signs() -> None:
    """Two keys make two signatures, separated by a blank, in their order."""
    other = new_key(b"k" * 32)
    both = signatures([KEY, other], "evt_1", 1, BODY)
    assert both.split(" ") == [sign(KEY, "evt_1", 1, BODY), sign(other, "evt_1", 1, BODY)]


def test_the_old_key_signs_until_its_grace_ends() -> None:
    """The previous key is valid up to, and not at, the end of its grace; the new one
    comes first.
    """
    hidden, until = rotated({"signing_keys": [{"key": "a", "until": None}]}, "b", 1_000, 500)
    assert until == 1_500
    assert valid_keys(hidden, 1_499) == ["b", "a"]
    assert valid_keys(hidden, 1_500) == ["b"]


def test_no_grace_retires_the_old_key_at_once() -> None:
    """With a grace of nothing only the new key is left."""
    hidden, _ = rotated({"signing_keys": [{"key": "a", "until": None}]}, "b", 1_000, 0)
    assert hidden == {"signing_keys": [{"key": "b", "until": None}]}


def test_a_promised_grace_outlives_the_next_rotation() -> None:
    """Rotating again does not shorten what was promised for an earlier key."""
    hidden, _ = rotated({"signing_keys": [{"key": "a", "until": None}]}, "b", 0, 1_000)
    hidden, _ = rotated(hidden, "c", 10, 0)
    assert valid_keys(hidden, 999) == ["c", "a"]
    assert valid_keys(hidden, 1_000) == ["c"]


def test_keys_do_not_pile_up() -> None:
    """However often a key is rotated, the newest ten sign, and no end lies beyond the
    last instant.
    """
    hidden = {"signing_keys": [{"key": "0", "until": None}]}
    for number in range(1, 30):
        hidden, until = rotated(hidden, str(number), LATEST, 1_000)
        assert until == LATEST
    for number in range(30, 60):
        hidden, _ = rotated(hidden, str(number), 5_000, 1_000)
    assert valid_keys(hidden, 5_000) == [str(number) for number in range(59, 49, -1)]
