"""The sandbox clock: UTC in whole milliseconds, running or frozen, never going back."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from time import time_ns
from typing import NamedTuple

from .timers import Timer

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH = EPOCH.replace(tzinfo=None)
EARLIEST = -62_135_596_800_000  # 0001-01-01T00:00:00.000Z
# 9999-12-31T23:59:59.999Z: the last date-time that the contract allows
LATEST = 253_402_300_799_999
EARLIEST_START = 0  # 1970: leaves room before it for the history that a sandbox is seeded with
# 9000: a sandbox that begins later could have a plan's period end after LATEST. No clock is set or
# runs past it.
LATEST_START = 221_845_392_000_000

_source: ContextVar[Callable[[], int] | None] = ContextVar("_source", default=None)


def wall_ms() -> int:
    """The machine's time in milliseconds since 1970. Nowhere else is the wall clock read."""
    source = _source.get()
    return time_ns() // 1_000_000 if source is None else source()


@contextmanager
def wall_from(source: Callable[[], int]) -> Iterator[None]:
    """Take the machine's time from another source within the block: a recording is replayed at its
    own time.
    """
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


@lru_cache(maxsize=32)  # a step, and the next ones, write the same instants several times
def iso(ms: int) -> str:
    """Milliseconds since 1970 -> `2026-11-20T14:32:05.123Z`."""
    seconds, rest = divmod(ms, SECOND)
    return f"{_iso_second(seconds)}.{rest:03}Z"


@lru_cache(maxsize=32)  # a clock that runs shows a second a thousand times
def _iso_second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).isoformat()


def iso_or_none(ms: int | None) -> str | None:
    """`2026-11-20T14:32:05.123Z` of an instant in ms; None of one that is missing."""
    return None if ms is None else iso(ms)


@lru_cache(maxsize=32)  # a step parses the timestamp that it wrote several times
def parse_iso(text: str) -> int:
    """An RFC 3339 date-time -> milliseconds since 1970 (finer fractions are cut off).

    Instants outside the years 1 to 9999 of UTC become the first or the last instant of those years,
    a leap second the second after it. Raises ValueError for text that is not a date-time or has no
    offset.
    """
    text = text.upper()
    added = 0
    if text[:5] == "0000-":  # Python has no year 0; year 4 has the same days
        text = "0004-" + text[5:]
        added = -1_461 * DAY
    is_leap_second = text[16:19] == ":60"
    if is_leap_second:
        text = f"{text[:17]}59{text[19:]}"
        added += SECOND
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a date-time needs an offset such as Z")
    since = moment - EPOCH
    if is_leap_second and since.seconds != 86_399:
        raise ValueError("a leap second can only be the last second of a day in UTC")
    ms = since.days * DAY + since.seconds * SECOND + since.microseconds // 1_000 + added
    return min(max(ms, EARLIEST), LATEST)


class ClockState(NamedTuple):
    """A clock's state: the latched time and the offset from the wall clock, both in ms, and whether
    it is frozen.
    """

    now: int
    offset: int
    frozen: bool


class Clock:
    """The time of one sandbox.

    `recorded` is its setting after the newest step. `now` is latched: it keeps its value until it
    is set for what begins next, so all timestamps of one step are equal. Latching the time that a
    running clock shows is not a step.
    """

    def __init__(self, start: int | None = None) -> None:
        """`start` (ms) freezes the clock at that instant; without it the clock follows the wall
        clock.
        """
        self.set(ClockState(wall_ms() if start is None else start, 0, frozen=start is not None))

    def set(self, state: ClockState) -> None:
        """Take over the state that a step recorded."""
        self.recorded = state
        self.now = state.now

    @property
    def frozen(self) -> bool:
        """Whether it stands."""
        return self.recorded.frozen

    def read(self) -> int:
        """The present time in ms, without latching it."""
        return self.shown_at(wall_ms())

    def shown_at(self, wall: int) -> int:
        """What it shows, in ms, when the machine's clock shows `wall`.

        A running clock stops where the last one can be set to.
        """
        _, offset, frozen = self.recorded
        if frozen:
            return self.now
        return max(self.now, min(wall + offset, LATEST_START))

    def latch(self, wall: int, jobs: Sequence[Timer], *, stands: bool) -> bool:
        """Set `now` to the time at the machine's time `wall` (ms); returns False, and sets nothing,
        if the first of the jobs is due by then.

        A clock that advances from delivery to delivery `stands` in between.
        """
        now = self.now if stands else self.shown_at(wall)
        if jobs and jobs[0].due <= now:
            return False
        self.now = now
        return True

    @property
    def state(self) -> ClockState:
        """The setting of the clock at its present instant."""
        return self.at(self.now)

    def at(self, now: int) -> ClockState:
        """The state of the clock at another instant (ms)."""
        return self.recorded._replace(now=now)

    def moved(self, to: int) -> ClockState:
        """The state after a jump forward; a running clock runs on from there."""
        return self.again(self.at(max(self.now, min(to, LATEST))))

    def resumed(self) -> ClockState:
        """The state of the clock running from `now`."""
        return self.again(self.state._replace(frozen=False))

    def again(self, then: ClockState) -> ClockState:
        """The state to go to another instant; a clock that ran then runs on from there."""
        if then.frozen:
            return then
        return ClockState(then.now, then.now - wall_ms(), frozen=False)
