"""Generated values of a sandbox: ids, codes and keys, drawn from separate streams of one seed."""

import hashlib
import hmac
from copy import copy
from hashlib import blake2b
from random import Random
from typing import TypeAlias

BASE36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BASE62 = BASE36 + "abcdefghijklmnopqrstuvwxyz"
# RFC 9562: bits 76 to 79 say version 4, bits 62 and 63 say 10.
_FREE = (1 << 128) - 1 & ~(0xF << 76 | 0b11 << 62)
_FIXED = 4 << 76 | 0b10 << 62

BLOCK = 512  # bits
_LOW_104 = (1 << 104) - 1

_RECORD, _CODE, _EVENT = 128, 96, 104  # bits


def _places(size: int) -> tuple[int, ...]:
    """Where in a block a value of so many bits can begin, after any values that were cut before it."""
    found = {0}
    for _ in range(BLOCK // _CODE):
        found |= {place + other for place in found for other in (_RECORD, _CODE, _EVENT)}
    return tuple(sorted(place for place in found if place + size <= BLOCK))


_RECORDS, _EVENTS = _places(_RECORD), _places(_EVENT)

_PAIRS = tuple(first + second for first in BASE36 for second in BASE36)
_BASE62_PAIRS = tuple(first + second for second in BASE62 for first in BASE62)
_HALF = (1 << 48) - 1


def uuid_text(bits: int) -> str:
    """128 bits -> a version 4 UUID in lower case."""
    b = (bits & _FREE | _FIXED).to_bytes(16, "big")
    return f"{b[:4].hex()}-{b[4:10].hex('-', 2)}-{b[10:].hex()}"


def named_uuid(*names: str) -> str:
    """A UUID in the form of version 4 that is derived from the names: the same names always give the same id."""
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


def luck(*names: str) -> float:
    """A number from 0 up to 1 that is derived from the names."""
    return int.from_bytes(blake2b("\x00".join(names).encode(), digest_size=8).digest(), "big") / (1 << 64)


Position: TypeAlias = tuple[int, int]
"""Position in the streams of a sandbox: how many blocks of ids and how many of secrets have been used."""


class Ids:
    """The seeded streams of one sandbox. Each position has a fixed value, and reading it does not move `position`.

    A draft reads on from `position`, and recording the step moves it: a refused request uses no ids, and two sandboxes
    with one seed and the same steps give the same ids. Secrets depend on the sandbox's name too, so that credentials of
    one sandbox are not valid in another. `requests` gives request ids their numbers: a replay has its own.
    """

    def __init__(self, seed: int, secret: bytes, sandbox: str = "") -> None:
        """Ids are derived from `seed`, secrets from `secret` and the identity of the sandbox: at first its name."""
        self.key = hashlib.sha256(f"{seed}/ids".encode()).digest()
        self._root = hmac.new(secret, b"credentials", hashlib.sha256).digest()
        self.position: Position = (0, 0)
        self.event_salt = 0
        self._name(sandbox, str(seed))
        self.identify(sandbox)

    def identify(self, identity: str) -> None:
        """Draw secrets of another identity from now on."""
        self.secret_key = hmac.new(self._root, identity.encode(), hashlib.sha256).digest()

    def _name(self, sandbox: str, root: str) -> None:
        self.requests = Random(f"{root}/requests/{sandbox}")

    def salt_events(self, sandbox: str) -> None:
        """Make event ids that no other sandbox makes: receivers take two deliveries of one id for one event."""
        self.event_salt = int.from_bytes(hashlib.sha256(sandbox.encode()).digest()[:13], "big")

    def upcoming(self, blocks: int) -> tuple[set[int], set[int]]:
        """The ids of records that the next blocks can give, as numbers, and those of events."""
        records, events, at = set[int](), set[int](), self.position[0]
        for number in range(at, at + blocks):
            bits = int.from_bytes(blake2b(self.key + number.to_bytes(8, "big")).digest(), "big")
            records.update([bits >> place & _FREE | _FIXED for place in _RECORDS])
            events.update([bits >> place & _LOW_104 ^ self.event_salt for place in _EVENTS])
        return records, events

    def request(self) -> str:
        """A new request id. Request ids are not part of a sandbox's state."""
        return "req_" + self.requests.getrandbits(96).to_bytes(12, "big").hex()

    def before(self) -> "Ids":
        """The ids for the seeded past: separate streams, from position 0 on."""
        twin = copy(self)
        twin.key, twin.position, twin.event_salt = hashlib.sha256(self.key + b"/before").digest(), (0, 0), 0
        twin._name("", twin.key.hex())
        twin.identify("")
        return twin

    def copy(self, sandbox: str) -> "Ids":
        """The same ids from the same position on, with the secrets and request ids of another sandbox."""
        twin = copy(self)
        twin._name(sandbox, self.key.hex())
        twin.identify(sandbox)
        return twin


class Cutter:
    """Cuts ids from the blocks of a sandbox's streams, beginning at its present position."""

    __slots__ = ("_bits", "_ids", "position")

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self.position = ids.position  # after the values that were cut
        self._bits = 1  # what is left of a block, above it a one

    def _take(self, size: int) -> int:
        """The next bits, the lowest `size` of which belong to the value."""
        bits = self._bits
        if not bits >> size:  # too few are left
            at, secrets_at = self.position
            bits = 1 << BLOCK | int.from_bytes(blake2b(self._ids.key + at.to_bytes(8, "big")).digest(), "big")
            self.position = at + 1, secrets_at
        self._bits = bits >> size
        return bits

    def uuid(self) -> str:
        """A record's id."""
        return uuid_text(self._take(_RECORD))

    def code(self) -> str:
        """Ten characters of 0-9A-Z, as orders and subscriptions have them.

        They are made of 96 bits: with so many the bias of the remainder is negligible.
        """
        bits = self._take(_CODE)
        last, first = bits >> 48 & _HALF, bits & _HALF  # smaller numbers divide faster
        return (
            f"{_PAIRS[first % 1296]}{_PAIRS[first // 1296 % 1296]}{_PAIRS[first // 1679616 % 1296]}"
            f"{_PAIRS[last % 1296]}{_PAIRS[last // 1296 % 1296]}"
        )

    def event(self) -> str:
        """An event's id, which is also its webhook-id."""
        return f"evt_{self._take(_EVENT) & _LOW_104 ^ self._ids.event_salt:026x}"

    def alnum(self, length: int) -> str:
        """`length` characters of 0-9A-Za-z, at most seventeen."""
        bits, text = self._take(_RECORD) & _LOW_104, ""
        while len(text) < length:
            bits, place = divmod(bits, 3844)
            text += _BASE62_PAIRS[place]
        return text[:length]

    def secret_bytes(self) -> bytes:
        return self._secret()[:32]

    def secret(self, length: int) -> str:
        """`length` characters of 0-9A-Za-z for a credential."""
        return derived_text(self._secret(), length)

    def _secret(self) -> bytes:
        """64 bytes, from which credentials are made."""
        at, secrets_at = self.position
        self.position = at, secrets_at + 1
        return hmac.digest(self._ids.secret_key, secrets_at.to_bytes(8, "big"), hashlib.sha512)
