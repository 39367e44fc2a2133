"""Signatures are those of Standard Webhooks 1.0, and rotating a key leaves no gap."""

from stub_server.core.clock import LATEST
from stub_server.core.signing import sign
from stub_server.domain.webhooks import rotated, valid_keys

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'


def test_the_published_vector() -> None:
    """The specification's own example signs to the published value."""
    made = sign(KEY, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, BODY)
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


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


def test_a_promised_grace_outlives_the_next_rotation() -> None:
    """Rotating again does not shorten what was promised for an earlier key."""
    hidden, _ = rotated({"signing_keys": [{"key": "a", "until": None}]}, "b", 0, 1_000)
    hidden, _ = rotated(hidden, "c", 10, 0)
    assert valid_keys(hidden, 999) == ["c", "a"]
    assert valid_keys(hidden, 1_000) == ["c"]
