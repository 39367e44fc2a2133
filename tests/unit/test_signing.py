"""Signatures are those of Standard Webhooks 1.0, and rotating a key leaves no gap."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from stub_server.core.clock import LATEST, wall_ms
from stub_server.core.signing import new_key, sign
from stub_server.domain.webhooks import rotated, valid_keys

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'


def test_the_published_vector() -> None:
    """The specification's own example signs to the published value."""
    made = sign(KEY, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, BODY)
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(secret=st.binary(min_size=24, max_size=64), text=st.text(st.characters(codec="utf-8")))
def test_the_reference_library_accepts_ours(secret: bytes, text: str) -> None:
    """Whatever the key and the body, the independent verifier accepts the signature, for
    no other body.
    """
    key = new_key(secret)
    now = wall_ms() // 1000
    body = orjson.dumps({"text": text})
    headers = {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(now),
        "webhook-signature": sign(key, "evt_1", now, body),
    }
    assert Webhook(key).verify(body.decode(), headers) == {"text": text}
    with pytest.raises(WebhookVerificationError):
        Webhook(key).verify(body.decode() + " ", headers)


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
