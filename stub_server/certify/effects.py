"""What a receiver does about a delivery: its calls to the API, and what its owner lets be counted."""

import re
from decimal import Decimal
from typing import NamedTuple

from ..events.sender import Failed, Sender

_ASKING_TIME = 4.0  # seconds
_NUMBER = re.compile(r"\s*-?[0-9]{1,30}(\.[0-9]{1,30})?\s*").fullmatch


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
            answer = await self._sender.ask(self._url, _ASKING_TIME)
        except Failed as error:
            self.trouble = str(error)
            return None
        if _NUMBER(answer) is None:
            self.trouble = "the answer is not a number"
            return None
        return Decimal(answer.strip())


class Work(NamedTuple):
    """What was done between two moments: calls that change something, and the number before and after."""

    calls: int = 0
    before: Decimal | None = None
    after: Decimal | None = None

    @property
    def difference(self) -> Decimal:
        """By how much the number has changed."""
        return Decimal(0) if self.before is None or self.after is None else self.after - self.before

    @property
    def is_any(self) -> bool:
        """Whether anything was done."""
        return self.calls > 0 or self.difference != 0

    def is_more_than(self, one: "Work") -> bool:
        """Whether more was done than `one` delivery causes."""
        return self.calls > one.calls or abs(self.difference) > abs(one.difference)

    def __str__(self) -> str:
        calls = {0: "no call", 1: "one call"}.get(self.calls, f"{self.calls} calls") + " that changes something"
        if self.before is None or self.after is None:
            return calls
        if self.difference:
            return f"{calls}; the effects went from {self.before} to {self.after}"
        return f"{calls}; the effects stayed {self.after}"
