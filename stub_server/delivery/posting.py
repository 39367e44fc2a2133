"""Makes attempts: each when there is a place for it, and records its outcome as a step."""

from __future__ import annotations

import asyncio
import logging
from asyncio import CancelledError, Future, get_running_loop
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from enum import Enum
from typing import NamedTuple
from urllib.parse import urlsplit

from ..domain.deliveries import AUTOMATIC, AttemptOutcome
from ..domain.webhooks import ABROAD
from ..engine.attempts import LOST, Attempt, attempt_for, conclude, disturbance, wrong_keys
from ..engine.deliveries import ANSWERING, is_kept_back, is_simulated, is_waiting
from ..engine.draft import Draft
from ..engine.sandbox import Sandbox
from ..engine.scheduler import caught_up
from ..engine.step import Cause
from ..events.sender import Delivery, Sender
from ..faults.fault_rules import Disturbance
from ..kernel.clock import SECOND
from ..kernel.problem import Unavailable
from ..kernel.slices import BackgroundWorker
from ..kernel.timers import SENDING, Timer
from ..store.memory import Store

IN_ALL = 128
SLOW = NEW = 48  # of them for receivers that are known to be slow, and for those without an attempt so far
PER_HOST = 16
LATE = 1000  # ms: a receiver that takes longer is slow
MOST_KNOWN = 10_000  # webhooks whose latest attempt is remembered
log = logging.getLogger("stub_server")


class Receiver(Enum):
    """How a receiver answered its latest attempt."""

    PROVED, NEW, SLOW = "answers at once", "has had no attempt", "answers late or not at all"


class Place(NamedTuple):
    """What an attempt needs a place for. A sandbox gets at most half of all places, and half of those of each kind."""

    sandbox: int
    host: str
    receiver: Receiver

    def limits(self) -> Iterator[tuple[Hashable, int]]:
        """What is limited, and to how many."""
        kind = {Receiver.PROVED: IN_ALL, Receiver.NEW: NEW, Receiver.SLOW: SLOW}[self.receiver]
        yield None, IN_ALL
        yield self.sandbox, IN_ALL // 2
        yield self.host, PER_HOST
        yield self.receiver, kind
        yield (self.sandbox, self.receiver), kind // 2


class Places:
    """Limits how many attempts run at once: in all, of one sandbox and to one host.

    Sandboxes take turns; within a sandbox the first attempt that fits is first.
    """

    def __init__(self) -> None:
        self._used: Counter[Hashable] = Counter()
        self._waiting: OrderedDict[int, deque[tuple[Place, Future[None]]]] = OrderedDict()

    def is_free(self, place: Place) -> bool:
        """Whether an attempt need not wait."""
        return all(self._used[of] < most for of, most in place.limits())

    @asynccontextmanager
    async def at(self, place: Place) -> AsyncIterator[None]:
        """A place for one attempt, until the block ends."""
        if self.is_free(place):
            self._take(place)
        else:
            await self._wait(place)
        try:
            yield
        finally:
            self._free(place)

    async def _wait(self, place: Place) -> None:
        given: Future[None] = get_running_loop().create_future()
        waiting = place, given
        self._waiting.setdefault(place.sandbox, deque()).append(waiting)
        try:
            await given
        except CancelledError:
            if given.cancelled():
                self._waiting[place.sandbox].remove(waiting)
            else:
                self._free(place)
            raise

    def _take(self, place: Place) -> None:
        for of, _ in place.limits():
            self._used[of] += 1

    def _free(self, place: Place) -> None:
        """Give a place back. The first waiting attempt that fits gets it, and its sandbox goes behind the others."""
        for of, _ in place.limits():
            self._used[of] -= 1
            if not self._used[of]:
                del self._used[of]
        for sandbox, queue in list(self._waiting.items()):
            following = next((one for one in queue if self.is_free(one[0])), None)
            if following is not None:
                queue.remove(following)
                self._waiting.move_to_end(sandbox)
                self._take(following[0])
                following[1].set_result(None)
            if not queue:
                del self._waiting[sandbox]
            if following is not None:
                return


class Made(NamedTuple):
    """An attempt that was made: whether it timed out, and how long it took in ms."""

    timed_out: bool
    took: int


class Flying:
    """The attempts of a sandbox that are under way or wait for a place: how many, and their time limits.

    `ends` has what ends an attempt, with its merchant and webhook.
    """

    __slots__ = ("count", "ends", "limits")

    def __init__(self) -> None:
        self.count = 0
        self.limits: set[asyncio.Timeout] = set()
        self.ends: dict[asyncio.Timeout, tuple[str, str]] = {}

    @asynccontextmanager
    async def ending(self, merchant_id: str, webhook: str) -> AsyncIterator[None]:
        """An attempt to a webhook. Raises TimeoutError when it is ended."""
        async with asyncio.timeout(None) as end:
            self.ends[end] = merchant_id, webhook
            try:
                yield
            finally:
                self.ends.pop(end, None)


class Posting:
    """One per server."""

    def __init__(
        self, sender: Sender, abroad: Sender, worker: BackgroundWorker, try_again: Callable[[Sandbox, Timer], None]
    ) -> None:
        """`try_again` is called with an attempt that failed by a defect of the server."""
        self._sender, self._abroad, self._worker, self._try_again = sender, abroad, worker, try_again
        self._places = Places()
        self._flying: dict[int, Flying] = {}
        self._latest: dict[tuple[int, str], Made] = {}  # the latest attempt by sandbox and webhook
        self._watching: list[Future[None]] = []

    async def deliver(self, sandbox: Sandbox, timer: Timer, timeout: float) -> Made | None:
        """Make a claimed attempt, if it is still due, and record its outcome.

        Returns None where nothing was sent, or the webhook was deleted meanwhile.
        """
        advancing = sandbox.is_advancing
        flying = self._flying.setdefault(id(sandbox), Flying())
        flying.count += 1
        try:
            attempt = self._attempt(sandbox, timer)
            if attempt is None:
                return None
            key = id(sandbox), attempt.webhook.id
            place = Place(key[0], urlsplit(attempt.delivery.url).netloc.lower(), self._known(key))
            was_free = self._places.is_free(place)
            async with flying.ending(timer.merchant_id, attempt.webhook.id), self._places.at(place):
                if not was_free:
                    if sandbox.is_advancing != advancing:
                        sandbox.timers.release(timer)
                        return None
                    attempt = self._attempt(sandbox, timer)
                    if attempt is None:
                        return None
                if sandbox.log.stored is not None:  # an event that was sent must not be undone
                    await sandbox.log.stored()
                begun = sandbox.clock.now if sandbox.is_advancing else sandbox.clock.read()
                sender = self._abroad if attempt.webhook.hidden.get(ABROAD) else self._sender
                disturbed = disturbance(sandbox, attempt.webhook, attempt.log)
                outcome = await send(sender, attempt.delivery, timeout, disturbed, flying.limits)
            if not sandbox.is_broken:
                await caught_up(sandbox, self._worker)
            if not sandbox.is_gone and not sandbox.is_broken:
                self._record(sandbox, timer, attempt, outcome, begun)
            self._latest.pop(key, None)
            made = self._latest[key] = Made(outcome.error == "timeout", outcome.duration_ms)
            if len(self._latest) > MOST_KNOWN:
                del self._latest[next(iter(self._latest))]
            return made
        except TimeoutError:  # its webhook was deleted
            sandbox.timers.pass_over(timer)
            return None
        except CancelledError:
            sandbox.timers.release(timer)
            raise
        except Unavailable:  # its outcome cannot be stored: it is repeated once it can
            sandbox.timers.release(timer)
            return None
        except Exception:
            log.exception("defect in a delivery of sandbox %s; it is tried again", sandbox.name)
            self._try_again(sandbox, timer)
            return None
        finally:
            flying.count -= 1
            if not flying.count:
                del self._flying[id(sandbox)]
            self.wake()

    def _attempt(self, sandbox: Sandbox, timer: Timer) -> Attempt | None:
        """What is to be sent now; None where nothing is, no longer or not yet."""
        if sandbox.is_gone or sandbox.is_broken or not sandbox.timers.is_claimed(timer):
            return None
        attempt = attempt_for(sandbox, timer)
        if attempt is None:
            sandbox.timers.pass_over(timer)
        elif is_simulated(sandbox, attempt.delivery.url):  # the webhook has another address by now
            draft = self._draft(sandbox, timer, sandbox.stores[timer.merchant_id])
            draft.at(draft.now, ANSWERING, timer.subject)
            draft.record()
            return None
        elif is_kept_back(sandbox, attempt.serial, attempt.delivery.url):
            sandbox.timers.hold(timer)
            return None
        elif is_waiting(sandbox.stores[timer.merchant_id], attempt.log):
            sandbox.timers.park(timer, attempt.webhook.id)
            return None
        return attempt

    def _record(self, sandbox: Sandbox, timer: Timer, attempt: Attempt, outcome: AttemptOutcome, begun: int) -> None:
        """The step of an attempt, at the instant that the clock shows by now."""
        store = sandbox.stores.get(timer.merchant_id)
        if store is None:
            return
        draft = self._draft(sandbox, timer, store)
        conclude(draft, attempt.log, attempt.webhook.id, outcome, attempt.delivery.url, AUTOMATIC, begun)
        draft.record()

    def _draft(self, sandbox: Sandbox, timer: Timer, store: Store) -> Draft:
        """The step that an attempt ends with."""
        draft = Draft(sandbox, store, Cause("delivery", timer.subject, SENDING))
        if sandbox.timers.is_set(timer):  # also in a sandbox that was rewound meanwhile
            draft.fired(timer)
        return draft

    def _known(self, key: tuple[int, str]) -> Receiver:
        latest = self._latest.get(key)
        if latest is None:
            return Receiver.NEW
        return Receiver.SLOW if latest.timed_out or latest.took > LATE else Receiver.PROVED

    def has_timed_out(self, sandbox: Sandbox, webhook: str) -> bool:
        """Whether the latest attempt to a webhook had no answer in time."""
        latest = self._latest.get((id(sandbox), webhook))
        return latest is not None and latest.timed_out

    def forget(self) -> None:
        """Forget how receivers answered."""
        self._latest.clear()

    def end(self, sandbox: Sandbox) -> None:
        """End the attempts to webhooks that were deleted."""
        flying = self._flying.get(id(sandbox))
        if flying is None:
            return
        for limit, (merchant_id, webhook) in list(flying.ends.items()):
            store = None if sandbox.is_gone else sandbox.stores.get(merchant_id)
            if store is None or store.webhooks.find(webhook) is None:
                limit.reschedule(0)
                del flying.ends[limit]

    def in_flight(self, sandbox: Sandbox) -> int:
        """How many attempts of a sandbox are under way or wait for a place."""
        flying = self._flying.get(id(sandbox))
        return flying.count if flying is not None else 0

    def hasten(self, sandbox: Sandbox, seconds: float) -> None:
        """Give the attempts of a sandbox that are under way at most so many seconds more."""
        flying = self._flying.get(id(sandbox))
        end = get_running_loop().time() + seconds
        for limit in flying.limits if flying is not None else ():
            set_for = limit.when()
            if set_for is not None and set_for > end:
                limit.reschedule(end)

    async def ended(self) -> None:
        """Wait until some attempt has ended."""
        future: Future[None] = get_running_loop().create_future()
        self._watching.append(future)
        await future

    def wake(self) -> None:
        """Wake those who wait: an attempt or a clock call has ended."""
        watching, self._watching = self._watching, []
        for future in watching:
            if not future.done():
                future.set_result(None)


async def send(
    sender: Sender,
    delivery: Delivery,
    timeout: float,
    disturbed: Disturbance | None,
    limits: set[asyncio.Timeout] | None = None,
) -> AttemptOutcome:
    """Post once, or as the fault rules say, which the outcome names. Of a duplicate the first answer counts."""
    if disturbed is None:
        return await sender.attempt(delivery, timeout, limits)
    if disturbed.delay:
        await asyncio.sleep(disturbed.delay / SECOND)
    if disturbed.drop:
        return AttemptOutcome(None, None, {}, disturbed.delay, LOST, {}, "", simulated=disturbed.label)
    if disturbed.bad_signature:
        delivery = replace(delivery, keys=wrong_keys(delivery.keys))
    outcome = await sender.attempt(delivery, timeout, limits)
    if disturbed.duplicate:
        await sender.attempt(delivery, timeout, limits)
    return outcome._replace(simulated=disturbed.label, duration_ms=outcome.duration_ms + disturbed.delay)
