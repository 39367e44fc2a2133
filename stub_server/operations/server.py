"""What a handler may ask of the server itself: its address, its contract, its worlds, and tokens."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from ..contract.document import Document
from ..sandboxes import Sandboxes


class Issuer(Protocol):
    """Makes tokens."""

    def issue(
        self, sandbox: str, merchant_id: str, user_id: str, scopes: Iterable[str], expires_in: int, serial: int = 0
    ) -> tuple[str, int]:
        """A token and the second of its expiry."""


@dataclass(frozen=True, slots=True)
class Server:
    """One per application."""

    version: str
    url: str
    document: Document
    control: Document
    sandboxes: Sandboxes
    tokens: Issuer
    loopback: bool
