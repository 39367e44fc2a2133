"""`stub-server listen`: forwards the events of a sandbox to a receiver, signed, without a webhook for them."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import orjson

from ..domain.webhooks import listens
from ..events.sender import Delivery, Sender
from ..events.signing import new_key
from ..kernel.text import counted
from ..version import __version__
from .options import json_text
from .server import Away, Refused, RunningServer

WAIT = 25  # seconds that a request waits for an event
ATTEMPT = 15.0  # seconds that the receiver has
PAUSE = 1.0  # seconds before the next try to reach a server or a receiver

Event = dict[str, Any]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be done: `patterns` of events, where they go (None: nowhere), whether each is shown whole."""

    patterns: tuple[str, ...]
    forward_to: str | None
    show: bool
    as_json: bool


class Listener:
    """Follows one sandbox. `failures` are the events that the receiver did not take."""

    def __init__(self, server: RunningServer, wanted: Wanted, out: Say, notice: Say) -> None:
        """`out` takes a line for each event, `notice` what is to be known besides."""
        self.failures = 0
        self._server, self._wanted, self._out, self._notice = server, wanted, out, notice
        self._sender = Sender(__version__, local=True)
        self._key = ""
        self._since = ""

    async def begin(self) -> None:
        """Reach the server, take up the present position, and say what signs. Raises Away, Refused."""
        credentials = await self._server.control("GET", "/credentials")
        self._key = _key_of(credentials["private_key"])
        await self._check_patterns(credentials["jwt"])
        self._since = (await self._server.control("GET", "/events/feed"))["next"]
        sandbox, to = credentials["sandbox"], self._wanted.forward_to
        if self._wanted.as_json:
            ready = {"sandbox": sandbox, "forward_to": to, "signing_key": self._key}
            self._out(json_text(ready))
            return
        self._out(f"Events of the sandbox {sandbox}" + (f" go to {to}, signed with {self._key}" if to else ""))

    async def follow(self) -> None:
        """Forward what happens, in its order, until cancelled. Raises Refused."""
        is_away = False
        while True:
            try:
                page = await self._server.control(
                    "GET", "/events/feed", params={"since": self._since, "wait_seconds": WAIT, "limit": 100}
                )
            except Away:
                if not is_away:
                    self._notice("The server is away; it is tried again every second.")
                is_away = True
                await asyncio.sleep(PAUSE)
                continue
            if is_away:
                self._notice("The server is back.")
            is_away = False
            if page["began_anew"]:
                self._notice("The sandbox was reset or rewound, or the server restarted.")
            if page["missed"]:
                verb = "is" if page["missed"] == 1 else "are"
                self._notice(f"{counted(page['missed'], 'event')} {verb} not kept any more.")
            for event in page["events"]:
                if listens(self._wanted.patterns, event["type"]):
                    await self._tell(event)
            self._since = page["next"]

    async def _check_patterns(self, token: str) -> None:
        contract = await self._server.api(token, "/openapi.json")
        known = contract["components"]["schemas"]["EventPattern"]["enum"]
        for pattern in self._wanted.patterns:
            if pattern not in known:
                meant = get_close_matches(pattern, known, 1)
                hint = f" Did you mean {meant[0]}?" if meant else f" Known are {', '.join(known)}."
                raise Refused(f"no event is called {pattern}.{hint}", None)

    async def _tell(self, event: Event) -> None:
        status, error, duration = None, None, 0
        if self._wanted.forward_to is not None:
            self.failures += 1  # until it is known to have arrived: the wait may be cut short
            status, error, duration = await self._forward(event, self._wanted.forward_to)
            self.failures -= error is None
        self._out(self._line(event, status, error, duration))

    async def _forward(self, event: Event, to: str) -> tuple[int | None, str | None, int]:
        """Deliver an event. Who takes no connection has not had it: it is tried again until somebody does."""
        delivery = Delivery(to, event["id"], orjson.dumps(event), (), (self._key,))
        is_away = False
        while True:
            outcome = await self._sender.attempt(delivery, ATTEMPT)
            if outcome.error not in ("connection_refused", "dns"):
                if is_away:
                    self._notice("The receiver is back.")
                return outcome.status, outcome.error, outcome.duration_ms
            if not is_away:
                self._notice(f"Nobody answers at {to} ({outcome.error}); it is tried again every second.")
            is_away = True
            await asyncio.sleep(PAUSE)

    def _line(self, event: Event, status: int | None, error: str | None, duration: int) -> str:
        if self._wanted.as_json:
            told = {
                "time": event["timestamp"],
                "type": event["type"],
                "id": event["id"],
                "status": status,
                "error": error,
                "ms": duration if self._wanted.forward_to else None,
            }
            return json_text(told | ({"event": event} if self._wanted.show else {}))
        line = f"{event['timestamp']}  {event['type']:<26}"
        if self._wanted.forward_to is not None:
            line += f"  {status or error}  {duration} ms"
        return line.rstrip() + (f"\n{json_text(event)}" if self._wanted.show else "")


def _key_of(private_key: str) -> str:
    """The key that signs: the same for a sandbox each time, so that a receiver can keep it."""
    return new_key(hmac.digest(private_key.encode(), b"stub-server listen", hashlib.sha256))
