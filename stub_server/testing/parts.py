"""Parts of a sandbox that a test makes: rules by which requests fail, and receivers of webhooks."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from json import loads

import httpx2

from ..core.members import given
from .http import Json, done, shown

__tracebackhide__ = True  # a failed test shows the test's own lines
_PAUSE = 0.02  # seconds between two looks into an inbox


class Fault(AbstractContextManager["Fault", None]):
    """A rule by which requests fail; `id` names it."""

    def __init__(self, control: httpx2.Client, made: Json) -> None:
        self.id: str = made["id"]
        self._control = control
        self._final: int | None = None

    def __exit__(self, *_: object) -> None:
        self.delete()

    @property
    def hits(self) -> int:
        """How many requests it made fail, also after the block."""
        if self._final is not None:
            return self._final
        for fault in done(self._control.get("/faults", params={"limit": 100}))["faults"]:
            if fault["id"] == self.id:
                return int(fault["hits"])
        return 0

    def delete(self) -> None:
        """Delete the rule, if it still exists."""
        self._final = self.hits
        answer = self._control.delete(f"/faults/{self.id}")
        if answer.status_code != 404:
            done(answer)


class Inbox:
    """A receiver of webhooks in the sandbox itself. `signing_key` is that of its webhook."""

    def __init__(self, control: httpx2.Client, name: str, webhook: Json) -> None:
        self.url: str = webhook["url"]
        self.webhook, self.signing_key = webhook, str(webhook["signing_key"])
        self._control, self._path = control, f"/inbox/{name}"
        self._waited_for: set[int] = set()

    def messages(self, event: str | None = None) -> list[Json]:
        """What arrived, of one event or of all, oldest first: the newest 100."""
        found: list[Json] = done(
            self._control.get(self._path, params=given(limit="100", event_type=event))
        )["messages"]
        return found[::-1]

    def wait_for(self, event: str, timeout: float = 5.0) -> Json:
        """The payload of the next event of a type that arrives, or has arrived and was not waited
        for yet.

        Raises AssertionError with what arrived if there is none in `timeout` seconds.
        """
        until = time.monotonic() + timeout
        while True:
            arrived = self.messages(event)
            for message in arrived:
                if message["number"] not in self._waited_for:
                    self._waited_for.add(message["number"])
                    answer = self._control.get(f"{self._path}/{message['number']}")
                    payload: Json = loads(shown(answer, "message")["body"])
                    return payload
            if time.monotonic() > until:
                others = ", ".join(str(each["event_type"]) for each in self.messages())
                another = "further " if arrived else ""
                raise AssertionError(
                    f"No {another}{event} arrived in {timeout:g} s, but: {others or 'nothing'}."
                )
            time.sleep(_PAUSE)
