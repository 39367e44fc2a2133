"""What a handler may ask of the server itself: its address, its contract, its worlds, and tokens."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..contract.document import Document
from ..kernel.record import Body
from ..sandboxes import Sandboxes


class Issuer(Protocol):
    """Makes tokens."""

    def issue(
        self, sandbox: str, merchant_id: str, user_id: str, scopes: Iterable[str], expires_in: int, serial: int = 0
    ) -> tuple[str, int]:
        """A token and the second of its expiry."""


@dataclass(frozen=True, slots=True)
class Server:
    """One per application. `blanks` holds, by schema, what a new resource is before anything is said about it."""

    version: str
    url: str
    document: Document
    control: Document
    blanks: Mapping[str, Body]
    sandboxes: Sandboxes
    tokens: Issuer
    check_digits: bool
    loopback: bool
