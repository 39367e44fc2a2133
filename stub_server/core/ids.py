"""Generated values of a sandbox: ids, codes and keys, drawn from separate streams of one seed."""

import hmac
from copy import copy
from hashlib import blake2b, sha256
from random import Random
from secrets import token_bytes
from uuid import UUID

BASE36 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
BASE62 = BASE36 + "abcdefghijklmnopqrstuvwxyz"


def uuid_text(bits: int) -> str:
    """128 bits -> a version 4 UUID in lower case."""
    return str(UUID(int=bits, version=4))


def named_uuid(*names: str) -> str:
    """A UUID in the form of version 4 that is derived from the names: the same names always give
    the same id.
    """
    return _uuid_of(sha256("\x00".join(names).encode()).digest())


def keyed_digest(key: bytes, message: bytes) -> bytes:
    """The HMAC of a message with SHA-256.

    `hmac.digest` would let other threads run meanwhile, and the event loop then waits for them
    longer than for all the rest of a request.
    """
    return hmac.new(key, message, sha256).digest()


def derived_text(secret: bytes, length: int, *names: str) -> str:
    """`length` base-62 characters that only the holder of `secret` can compute."""
    digest = b""
    counter = 0
    while len(digest) < length * 2:
        digest += keyed_digest(secret, "\x00".join((*names, str(counter))).encode())
        counter += 1
    return "".join(BASE62[(digest[2 * i] << 8 | digest[2 * i + 1]) % 62] for i in range(length))


def luck(*names: str) -> float:
    """A number from 0 up to 1 that is derived from the names."""
    return int.from_bytes(blake2b("\x00".join(names).encode(), digest_size=8).digest(), "big") / (
        1 << 64
    )


Position = tuple[int, int]
"""Position in the streams of a sandbox: how many ids and how many secrets have been used."""


class Ids:
    """The seeded streams of one sandbox. Each position has a fixed value, and reading it does not
    move `position`.

    A draft reads on from `position`, and recording the step moves it: a refused request uses no
    ids, and two sandboxes with one seed and the same steps give the same ids. Secrets depend on the
    sandbox's name too, so that credentials of one sandbox are not valid in another. `requests`
    gives request ids their numbers: a replay has its own.
    """

    def __init__(self, seed: int, secret: bytes, sandbox: str, *, repeats: bool) -> None:
        """Ids are derived from `seed`, secrets from `secret` and the identity of the sandbox: at
        first its name. Unless it `repeats`, secrets are random: a reset would bring ended ones
        back.
        """
        self.repeats = repeats
        self._draw_from(sha256(f"{seed}/ids".encode()).digest())
        self._root = keyed_digest(secret, b"credentials")
        self.position: Position = (0, 0)
        self.event_salt = 0
        self._name(sandbox, str(seed))
        self.identify(sandbox)

    def _draw_from(self, key: bytes) -> None:
        self.key = key
        self._keyed = blake2b(key=key, digest_size=32)

    def identify(self, identity: str) -> None:
        """Draw secrets of another identity from now on."""
        self.secret_key = keyed_digest(self._root, identity.encode())

    def _name(self, sandbox: str, root: str) -> None:
        self.requests = Random(f"{root}/requests/{sandbox}")

    def salt_events(self, sandbox: str) -> None:
        """Make event ids that no other sandbox makes: receivers take two deliveries of one id for
        one event.
        """
        self.event_salt = int.from_bytes(sha256(sandbox.encode()).digest()[:13], "big")

    def digest(self, number: int) -> bytes:
        """What the id of this number is made of."""
        found = self._keyed.copy()
        found.update(number.to_bytes(8, "big"))
        return found.digest()

    def event(self, digest: bytes) -> str:
        """An event's id."""
        return f"evt_{int.from_bytes(digest[:13], 'big') ^ self.event_salt:026x}"

    def upcoming(self, count: int) -> set[str]:
        """The ids that the next records and events can have."""
        first, _ = self.position
        found = set()
        for number in range(first, first + count):
            digest = self.digest(number)
            found.add(_uuid_of(digest))
            found.add(self.event(digest))
        return found

    def request(self) -> str:
        """A new request id. Request ids are not part of a sandbox's state."""
        return "req_" + self.requests.getrandbits(96).to_bytes(12, "big").hex()

    def before(self) -> "Ids":
        """The ids for the seeded past: separate streams, from position 0 on."""
        twin = copy(self)
        twin._draw_from(sha256(self.key + b"/before").digest())
        twin.position = (0, 0)
        twin.event_salt = 0
        twin._name("", twin.key.hex())
        twin.identify("")
        return twin

    def copy(self, sandbox: str) -> "Ids":
        """The same ids from the same position on, with the secrets and request ids of
        another sandbox.
        """
        twin = copy(self)
        twin._name(sandbox, self.key.hex())
        twin.identify(sandbox)
        return twin


class NextIds:
    """The next ids and secrets of a sandbox, beginning at its present position."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self.position = ids.position  # after the values that were taken

    def _digest(self) -> bytes:
        number, secrets = self.position
        self.position = number + 1, secrets
        return self._ids.digest(number)

    def uuid(self) -> str:
        """A record's id."""
        return _uuid_of(self._digest())

    def code(self) -> str:
        """Ten characters of 0-9A-Z, as orders and subscriptions have them."""
        return self._characters(BASE36, 10)

    def event(self) -> str:
        """An event's id, which is also its webhook-id."""
        return self._ids.event(self._digest())

    def alnum(self, length: int) -> str:
        """`length` characters of 0-9A-Za-z, at most 43."""
        return self._characters(BASE62, length)

    def _characters(self, alphabet: str, length: int) -> str:
        """A text made of a digest, whose 256 bits make the bias of the remainder negligible."""
        base = len(alphabet)
        number = int.from_bytes(self._digest(), "big") % base**length
        text = ""
        for _ in range(length):
            number, place = divmod(number, base)
            text += alphabet[place]
        return text

    def secret_bytes(self) -> bytes:
        """32 bytes for a credential."""
        return self._secret()[:32]

    def secret(self, length: int) -> str:
        """`length` characters of 0-9A-Za-z for a credential."""
        return derived_text(self._secret(), length)

    def _secret(self) -> bytes:
        """64 bytes, from which credentials are made."""
        number, secrets = self.position
        self.position = number, secrets + 1
        if not self._ids.repeats:
            return token_bytes(64)
        return hmac.digest(self._ids.secret_key, secrets.to_bytes(8, "big"), "sha512")


def _uuid_of(digest: bytes) -> str:
    return uuid_text(int.from_bytes(digest[:16], "big"))
