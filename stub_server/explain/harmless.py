"""Keeps a nearest request from switching off what the refused one did not: a repaired value must not end anything."""

from __future__ import annotations

from typing import Any

import orjson

from ..contract.document import Lifecycle
from ..contract.formats import date_time_ms, is_date_time
from ..kernel.clock import DAY, iso
from ..kernel.text import nearest
from .attempt import Attempt
from .values import NO

_YEAR = 365 * DAY
_WHY = "The request did not ask for an end."


def said(body: bytes | None) -> frozenset[str]:
    """The values of a body's members as texts; none of a body that is not known or cannot be read."""
    try:
        sent = orjson.loads(body or b"")
    except ValueError:
        return frozenset()
    values = sent.values() if isinstance(sent, dict) else ()
    return frozenset(str(value).strip().lower()[:64] for value in values)


def harmless(attempt: Attempt, words: frozenset[str], now: int, projects: Lifecycle) -> Attempt:
    """The attempt; what would switch its record off stays on, unless `words` of the request ask for it.

    A project is off while it does not sell, as its lifecycle says; plans and products have a state `inactive`.
    """
    changes: dict[str, Any] = {}
    if attempt.member("is_active") is False and words.isdisjoint(NO):
        changes["is_active"] = True
    status = attempt.member("status")
    off = ["inactive", *(state for state in projects.states if state not in projects.sets["selling"])]
    if status in off and not any(nearest(word, [status]) for word in words):
        changes["status"] = "active"
    ends = str(attempt.member("expires_at"))
    if is_date_time(ends) and date_time_ms(ends) <= now and not any(_is_day(word, ends) for word in words):
        changes["expires_at"] = iso(now + _YEAR)
    for name, value in changes.items():
        attempt = attempt.with_member([name], value, _WHY)
    return attempt


def _is_day(word: str, moment: str) -> bool:
    """Whether a text names the day of a date-time."""
    return len(word) >= 10 and moment.lower().startswith(word[:10])
