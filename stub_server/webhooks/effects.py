"""What a receiver does about a delivery: its calls to the API, and what its owner
lets be counted.
"""

from decimal import Decimal
from typing import NamedTuple

from ..core.text import counted
from ..domain.deliveries import Failed
from .sender import Sender

_ASKING_TIME = 4.0  # seconds
_SHOWN = 40  # characters of a text


class Effects:
    """An address of the receiver's owner that answers a number or a text which every processed
    delivery changes.

    It is guarded like a receiver. `trouble` says why it could not be asked at some time, if so: an
    effect may have been missed then.
    """

    def __init__(self, url: str, sender: Sender) -> None:
        self._url = url
        self._sender = sender
        self.trouble: str | None = None

    async def ask(self) -> str | None:
        """The number or text as it is now, None where there is no answer."""
        try:
            text = await self._sender.ask(self._url, _ASKING_TIME)
        except Failed as error:
            self.trouble = str(error)
            return None
        return text.strip()


class Work(NamedTuple):
    """What was done between two moments: calls that change something, and the number or text before
    and after.
    """

    calls: int = 0
    before: str | None = None
    after: str | None = None

    @property
    def has_changed(self) -> bool:
        """Whether the number or text is another one."""
        return None not in (self.before, self.after) and self.before != self.after

    @property
    def is_any(self) -> bool:
        """Whether anything was done."""
        return self.calls > 0 or self.has_changed

    @property
    def difference(self) -> Decimal | None:
        """By how much a number has changed; None for a text."""
        try:
            difference = Decimal(self.after or "") - Decimal(self.before or "")
        except ArithmeticError:
            return None
        if not difference.is_finite():
            return None
        return difference

    @property
    def is_countable(self) -> bool:
        """Whether doing it twice would show: calls and numbers add up, texts do not."""
        return self.calls > 0 or self.difference is not None

    def is_more_than(self, one: "Work") -> bool:
        """Whether more was done than `one` delivery causes."""
        if self.calls > one.calls:
            return True
        mine = self.difference
        usual = one.difference
        return mine is not None and usual is not None and abs(mine) > abs(usual)

    def __str__(self) -> str:
        calls = f"{counted(self.calls, 'call')} that changed something"
        if self.before is None or self.after is None:
            return calls
        if self.has_changed:
            return f"{calls}; the effects went from {self.before[:_SHOWN]} to {self.after[:_SHOWN]}"
        return f"{calls}; the effects stayed {self.after[:_SHOWN]}"
