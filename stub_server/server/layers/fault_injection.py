"""Faults on demand, by a request's own headers and by the fault rules of the sandbox."""

import re
from collections.abc import Iterator
from functools import partial

from ...contract.document import Operation
from ...core.problem import BadRequest
from ...core.text import nearest, warning_of
from ...engine.fault_rules import AFTER, LONGEST_DELAY, Effect
from ..reply import Answering
from ..request import MOST_WARNINGS
from .injection import Injection, refusals_of
from .way import Layer, Way

PREFER, SIMULATE, DELAY = b"prefer", b"x-sandbox-simulate", b"x-sandbox-delay"
_WISHES = frozenset((PREFER, SIMULATE, DELAY))
_PREFERENCES = ("code", "example")
_DELAY = re.compile(rf"\s*([0-9]{{1,6}})\s*(;\s*{AFTER}\s*)?", re.IGNORECASE).fullmatch


class FaultInjection:
    """Acts on requests to the API, before the credential is read.

    The control surface has no faults.
    """

    def __init__(self, app: Layer) -> None:
        self.app = app.__call__

    def __call__(self, way: Way) -> Answering:
        has_rules = bool(way.sandbox.faults.rules) and not way.request.is_internal
        if (has_rules or not _WISHES.isdisjoint(way.headers)) and not way.endpoint.base:
            return self._inject(way)
        return self.app(way)

    def _inject(self, way: Way) -> Answering:
        operation = way.endpoint.operation
        early, late = list[Effect](), list[Effect]()
        for wish in _asked(way, operation):
            # On a server that others can reach, only authenticated callers may cause a delay.
            if wish.only_waits and way.server.settings.for_others:
                late.append(wish)
            else:
                early.append(wish)
        faults = way.faults = Injection(way, operation, late)
        return faults.at_once(early, partial(self.app, way))


def _asked(way: Way, operation: Operation) -> Iterator[Effect]:
    """What a request's headers ask for.

    Raises BadRequest for what the operation cannot answer.
    """
    headers = way.headers
    if DELAY in headers:
        yield _delay(headers[DELAY])
    if SIMULATE in headers:
        yield from _wished(
            operation,
            "X-Sandbox-Simulate",
            "simulate",
            None,
            headers[SIMULATE].decode("latin-1").strip(),
        )
    if PREFER in headers:
        sent = [value for name, value in way.request.sent if name == PREFER]
        preferred = _preferences(b",".join(sent).decode("latin-1"))
        unknown = [name for name in reversed(preferred) if name not in _PREFERENCES]
        for name in unknown[:MOST_WARNINGS]:
            way.trace.warn([warning_of("unknown_preference", name, nearest(name, _PREFERENCES))])
        yield from _wished(
            operation, "Prefer", "prefer", preferred.get("code"), preferred.get("example")
        )


def _delay(header: bytes) -> Effect:
    """`800` waits before the request is executed, `800; after` before its answer is sent."""
    found = _DELAY(header.decode("latin-1"))
    if found is None or int(found[1]) > LONGEST_DELAY:
        raise BadRequest.at(
            "X-Sandbox-Delay",
            f"X-Sandbox-Delay is a whole number of milliseconds, at most {LONGEST_DELAY}, or 800;"
            " after.",
            where="header",
            violation="simulation",
        )
    if found[2]:
        return Effect("delay", delay_after=int(found[1]))
    return Effect("delay", delay=int(found[1]))


def _preferences(header: str) -> dict[str, str]:
    """The members of a Prefer header by name; the first of two counts (RFC 7240)."""
    members = [member.partition("=") for member in header.replace(";", ",").split(",")]
    return {
        name.strip().lower(): value.strip().strip('"')
        for name, _, value in reversed(members)
        if name.strip()
    }


def _wished(
    operation: Operation, header: str, label: str, status: str | None, code: str | None
) -> Iterator[Effect]:
    """The refusal of this status, this code, or both; nothing for a success.

    Raises BadRequest if there is none.
    """
    if status is None and code is None:
        return
    known = refusals_of(operation)
    if code is None:
        known += [(answered, None) for answered in operation.responses]
    for answered, its_code in known:
        if status in (None, str(answered)) and code in (None, its_code):
            if answered >= 400:
                yield Effect(label, {"status": answered, "code": its_code})
            return
    asked = " ".join(filter(None, (status, code)))
    answers = {str(answered if code is None else its_code) for answered, its_code in known}
    raise BadRequest.at(
        header,
        f"{header}: {operation.id} does not answer {asked[:60]}. It answers"
        f" {', '.join(sorted(answers))}.",
        where="header",
        violation="simulation",
    )
