"""Makes attempts: each when there is a place for it, as things stand then, and records what came of it as a step."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from ..domain.deliveries import AUTOMATIC, AttemptOutcome
from ..domain.webhooks import ABROAD
from ..engine.attempts import Attempt, attempt_for, conclude, disturbance
from ..engine.deliveries import ANSWERING, is_held, is_simulated, is_waiting
from ..engine.draft import Draft
from ..engine.sandbox import Sandbox
from ..engine.scheduler import caught_up
from ..engine.step import Cause
from ..events.sender import Sender
from ..kernel.problem import Unavailable
from ..kernel.slices import BackgroundWorker
from ..kernel.timers import SENDING, Timer
from ..store.memory import Store
from . import disturbed as disturbing
from .places import Place, Places, Receiver, host_of

LATE = 1000  # ms: who takes longer is slow
MOST_KNOWN = 10_000  # webhooks whose latest attempt is remembered
log = logging.getLogger("stub_server")


class Made(NamedTuple):
    """An attempt that was made: whether it ran into its limit of time, and how long it took in ms."""

    timed_out: bool
    took: int


class Flying:
    """The attempts of a world that are under way or wait for a place: how many, and the limits of their time.

    `ends` are what ends one altogether, with the merchant and the webhook that it is for.
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
        self, sender: Sender, abroad: Sender, lane: BackgroundWorker, try_again: Callable[[Sandbox, Timer], None]
    ) -> None:
        """`try_again` is told of an attempt that failed by a defect of ours."""
        self._sender, self._abroad, self._lane, self._try_again = sender, abroad, lane, try_again
        self._places = Places()
        self._flying: dict[int, Flying] = {}
        self._latest: dict[tuple[int, str], Made] = {}  # of each webhook the latest attempt
        self._watching: list[asyncio.Future[None]] = []

    async def deliver(self, world: Sandbox, timer: Timer, timeout: float) -> Made | None:
        """Make a claimed attempt, if it is still to be made, and record what came of it.

        Answers None where nothing was sent, or its webhook has gone meanwhile.
        """
        advancing = world.is_advancing
        flying = self._flying.setdefault(id(world), Flying())
        flying.count += 1
        try:
            attempt = self._attempt(world, timer)
            if attempt is None:
                return None
            key = id(world), attempt.webhook.id
            place = Place(key[0], host_of(attempt.delivery.url), self._known(key))
            was_free = self._places.is_free(place)
            async with flying.ending(timer.merchant_id, attempt.webhook.id), self._places.at(place):
                if not was_free:
                    if world.is_advancing != advancing:
                        world.timers.release(timer)
                        return None
                    attempt = self._attempt(world, timer)
                    if attempt is None:
                        return None
                if world.log.stored is not None:  # what is sent must not be undone
                    await world.log.stored()
                begun = world.clock.now if world.is_advancing else world.clock.read()
                sender = self._abroad if attempt.webhook.hidden.get(ABROAD) else self._sender
                disturbed = disturbance(world, attempt.webhook, attempt.log)
                outcome = await disturbing.attempt(sender, attempt.delivery, timeout, disturbed, flying.limits)
            if not world.is_broken:
                await caught_up(world, self._lane)
            if not world.is_gone and not world.is_broken:
                self._record(world, timer, attempt, outcome, begun)
            self._latest.pop(key, None)
            made = self._latest[key] = Made(outcome.error == "timeout", outcome.duration_ms)
            if len(self._latest) > MOST_KNOWN:
                del self._latest[next(iter(self._latest))]
            return made
        except TimeoutError:  # its webhook has gone
            world.timers.pass_over(timer)
            return None
        except asyncio.CancelledError:
            world.timers.release(timer)
            raise
        except Unavailable:  # what came of it cannot be written: it is made again once it can
            world.timers.release(timer)
            return None
        except Exception:
            log.exception("defect in a delivery of sandbox %s; it is tried again", world.name)
            self._try_again(world, timer)
            return None
        finally:
            flying.count -= 1
            if not flying.count:
                del self._flying[id(world)]
            self.tell()

    def _attempt(self, world: Sandbox, timer: Timer) -> Attempt | None:
        """What is to be sent now; None where nothing is: not any more, or not yet."""
        if world.is_gone or world.is_broken or not world.timers.is_claimed(timer):
            return None
        attempt = attempt_for(world, timer)
        if attempt is None:
            world.timers.pass_over(timer)
        elif is_simulated(world, attempt.delivery.url):  # the webhook has another address by now
            draft = self._draft(world, timer, world.stores[timer.merchant_id])
            draft.at(draft.now, ANSWERING, timer.subject)
            draft.record()
            return None
        elif is_held(world, attempt.serial, attempt.delivery.url):
            world.timers.hold(timer)
            return None
        elif is_waiting(world.stores[timer.merchant_id], attempt.log):
            world.timers.park(timer, attempt.webhook.id)
            return None
        return attempt

    def _record(self, world: Sandbox, timer: Timer, attempt: Attempt, outcome: AttemptOutcome, begun: int) -> None:
        """The step of an attempt, at the instant that the clock shows by now."""
        store = world.stores.get(timer.merchant_id)
        if store is None:
            return
        draft = self._draft(world, timer, store)
        conclude(draft, attempt.log, attempt.webhook.id, outcome, attempt.delivery.url, AUTOMATIC, begun)
        draft.record()

    def _draft(self, world: Sandbox, timer: Timer, store: Store) -> Draft:
        """The step that an attempt ends with."""
        draft = Draft(world, store, Cause("delivery", timer.subject, SENDING))
        if world.timers.is_set(timer):  # a world that was rewound meanwhile has it, and nobody has claimed it there
            draft.taken(timer)
        return draft

    def _known(self, key: tuple[int, str]) -> Receiver:
        latest = self._latest.get(key)
        if latest is None:
            return Receiver.NEW
        return Receiver.SLOW if latest.timed_out or latest.took > LATE else Receiver.PROVED

    def has_timed_out(self, world: Sandbox, webhook: str) -> bool:
        """Whether the latest attempt to a webhook had no answer in time."""
        latest = self._latest.get((id(world), webhook))
        return latest is not None and latest.timed_out

    def forget(self) -> None:
        """Know nothing of receivers any more."""
        self._latest.clear()

    def end(self, world: Sandbox) -> None:
        """End the attempts to webhooks of a world that are gone."""
        flying = self._flying.get(id(world))
        if flying is None:
            return
        for limit, (merchant_id, webhook) in list(flying.ends.items()):
            store = None if world.is_gone else world.stores.get(merchant_id)
            if store is None or store.webhooks.find(webhook) is None:
                limit.reschedule(0)
                del flying.ends[limit]

    def in_flight(self, world: Sandbox) -> int:
        """How many attempts of a world are under way or wait for a place."""
        flying = self._flying.get(id(world))
        return flying.count if flying is not None else 0

    def hasten(self, world: Sandbox, seconds: float) -> None:
        """Give the attempts of a world that are under way so many seconds more, at most."""
        flying = self._flying.get(id(world))
        end = asyncio.get_running_loop().time() + seconds
        for limit in flying.limits if flying is not None else ():
            set_for = limit.when()
            if set_for is not None and set_for > end:
                limit.reschedule(end)

    async def ended(self) -> None:
        """Wait until some attempt has ended."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watching.append(future)
        await future

    def tell(self) -> None:
        """Some attempt has ended, or a clock call has."""
        watching, self._watching = self._watching, []
        for future in watching:
            if not future.done():
                future.set_result(None)
