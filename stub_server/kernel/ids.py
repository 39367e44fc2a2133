"""Every invented value of a sandbox: identifiers, codes and keys out of one seed, in separate streams."""

import copy
import hashlib
import hmac
from random import Random

BASE36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BASE62 = BASE36 + "abcdefghijklmnopqrstuvwxyz"
# RFC 9562: bits 76 to 79 say version 4, bits 62 and 63 say 10.
_FREE = (1 << 128) - 1 & ~(0xF << 76 | 0b11 << 62)
_FIXED = 4 << 76 | 0b10 << 62

_PAIRS = tuple(first + second for first in BASE36 for second in BASE36)
_HALF = (1 << 48) - 1


def uuid_text(bits: int) -> str:
    """128 bits -> a version 4 UUID in lower case."""
    b = (bits & _FREE | _FIXED).to_bytes(16, "big")
    return f"{b[:4].hex()}-{b[4:10].hex('-', 2)}-{b[10:].hex()}"


def code_text(bits: int) -> str:
    """96 bits -> ten characters of 0-9A-Z: so many bits that none is noticeably likelier than another."""
    last, first = bits >> 48, bits & _HALF  # smaller numbers divide faster
    return (
        f"{_PAIRS[first % 1296]}{_PAIRS[first // 1296 % 1296]}{_PAIRS[first // 1679616 % 1296]}"
        f"{_PAIRS[last % 1296]}{_PAIRS[last // 1296 % 1296]}"
    )


def named_uuid(*names: str) -> str:
    """A version 4 shaped UUID that depends on its names alone: records with a name keep their id for ever."""
    digest = hashlib.sha256("\x00".join(names).encode()).digest()
    return uuid_text(int.from_bytes(digest[:16], "big"))


def derived_text(secret: bytes, length: int, *names: str) -> str:
    """`length` base-62 characters that only the holder of `secret` can compute."""
    digest = b""
    counter = 0
    while len(digest) < length * 2:
        digest += hmac.new(secret, "\x00".join((*names, str(counter))).encode(), hashlib.sha256).digest()
        counter += 1
    return "".join(BASE62[(digest[2 * i] << 8 | digest[2 * i + 1]) % 62] for i in range(length))


class Ids:
    """The seeded streams of one sandbox: reading never changes what a later write is called."""

    __slots__ = ("_events", "_records", "_requests", "_root", "_secrets")

    def __init__(self, seed: int, secret: bytes, world: str = "") -> None:
        """`seed` decides everything but the secrets, which come from `secret` and are others in every `world`."""
        self._records = Random(f"{seed}/records")
        self._events = Random(f"{seed}/events")
        self._requests = Random(f"{seed}/requests/{world}")
        self._root = hmac.new(secret, b"credentials", hashlib.sha256).digest()
        self._secrets = self._stream(world)

    def _stream(self, world: str) -> Random:
        # What one world is given must open nothing in another, though both were asked the same things.
        return Random(hmac.new(self._root, world.encode(), hashlib.sha256).hexdigest())

    def uuid(self) -> str:
        """A record's id."""
        return uuid_text(self._records.getrandbits(128))

    def code(self) -> str:
        """Ten characters of 0-9A-Z, as orders and subscriptions carry them."""
        return code_text(self._records.getrandbits(96))

    def alnum(self, length: int) -> str:
        """`length` characters of 0-9A-Za-z."""
        return "".join(self._records.choices(BASE62, k=length))

    def secret(self, length: int) -> str:
        """`length` characters of 0-9A-Za-z for a credential."""
        return "".join(self._secrets.choices(BASE62, k=length))

    def secret_bytes(self, length: int) -> bytes:
        """Bytes for a signing key."""
        return self._secrets.randbytes(length)

    def event(self) -> str:
        """An event's id, which is also its webhook-id."""
        return "evt_" + self._events.getrandbits(104).to_bytes(13, "big").hex()

    def request(self) -> str:
        """A request's id."""
        return "req_" + self._requests.getrandbits(96).to_bytes(12, "big").hex()

    def copy(self, world: str) -> "Ids":
        """The same streams at the same place, going their own way; secrets are those of the new world."""
        twin = copy.deepcopy(self)
        twin._secrets = self._stream(world)
        return twin
