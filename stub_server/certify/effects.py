"""What a receiver does about a delivery: its calls to the API, and what its owner lets be counted."""

from decimal import Decimal
from typing import NamedTuple

from ..events.sender import Failed, Sender

_ASKING_TIME = 4.0  # seconds
_SHOWN = 40  # characters of an answer


class Effects:
    """An address of the receiver's owner that answers a number which every processed delivery changes.

    It is guarded like a receiver. `trouble` says why it could not be asked at some time, if so: an effect may have been
    missed then.
    """

    def __init__(self, url: str, sender: Sender) -> None:
        self._url, self._sender = url, sender
        self.trouble: str | None = None

    async def ask(self) -> Decimal | None:
        """The number as it is now, None where there is no answer."""
        try:
            text = await self._sender.ask(self._url, _ASKING_TIME)
        except Failed as error:
            self.trouble = str(error)
            return None
        try:
            number = Decimal(text.strip())
        except ArithmeticError:
            self.trouble = f"{text[:_SHOWN]!r} is no number"
            return None
        return number if number.is_finite() else None


class Work(NamedTuple):
    """What was done between two moments: calls that change something, and by how much the number changed, if known."""

    calls: int = 0
    change: Decimal | None = None

    @property
    def is_any(self) -> bool:
        """Whether anything was done."""
        return self.calls > 0 or bool(self.change)

    def is_more_than(self, one: "Work") -> bool:
        """Whether more was done than `one` delivery causes."""
        return self.calls > one.calls or abs(self.change or 0) > abs(one.change or 0)

    def __str__(self) -> str:
        calls = {0: "no call", 1: "one call"}.get(self.calls, f"{self.calls} calls") + " that changes something"
        return calls if self.change is None else f"{calls}; the effects changed by {self.change}"
