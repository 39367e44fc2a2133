"""Guesses: how often an address has sent a wrong key."""

from time import monotonic

MOST, WINDOW = 10, 60.0  # wrong ones of an address, and seconds in which they count
MOST_ADDRESSES = 10_000


class Guesses:
    """The wrong ones of each address, and until when they count."""

    def __init__(self) -> None:
        self._counted: dict[str, tuple[float, int]] = {}

    def wait_of(self, address: str) -> float:
        """How many seconds an address has to wait, 0 for one that may guess."""
        ends, count = self._counted.get(address, (0.0, 0))
        return max(0.0, ends - monotonic()) if count >= MOST else 0.0

    def count(self, address: str) -> None:
        """Count a wrong one; the address that guessed longest ago makes room."""
        now = monotonic()
        ends, count = self._counted.pop(address, (0.0, 0))
        self._counted[address] = (ends, count + 1) if ends > now else (now + WINDOW, 1)
        if len(self._counted) > MOST_ADDRESSES:
            del self._counted[next(iter(self._counted))]
