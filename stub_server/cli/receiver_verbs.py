"""The verbs `certify` and `listen`, for receivers of webhooks.

Exit codes: 0 fine, 1 findings, 2 usage or no server, 3 not everything could be judged.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from time import sleep
from typing import TYPE_CHECKING

import click
import orjson

from ..core.members import given
from ..core.record import Body
from ..core.text import counted
from .options import Unusable, yaml_text
from .running_server import Away, Refused, Target

if TYPE_CHECKING:
    from ..domain.deliveries import AttemptOutcome

_WAIT = 25  # seconds that a request waits for an event
_ATTEMPT = 15.0  # seconds that the receiver has
_PAUSE = 1.0  # seconds before the next try to connect to a server or a receiver


def certify(
    target: Target,
    *,
    url: str,
    signing_key: str | None,
    event_type: str | None,
    effects: str | None,
    program: str | None,
) -> None:
    """Test the receiver of webhooks at URL. Exit code 1 if it breaks a rule, 3 if a rule could
    not be checked.
    """
    if effects is not None and program is not None:
        raise click.UsageError("Give --effects or --effects-command, not both.")
    target.may_be_new |= signing_key is not None  # then the receiver needs no webhook
    body = given(url=url, event_type=event_type, signing_key=signing_key, effects=effects)
    with ExitStack() as stack:
        if program is not None:
            from .effects_command import answering

            body["effects"] = stack.enter_context(answering(program, target.server))
        try:
            report: Body = target.control("POST", "/certify", json=body)["certificate"]
        except Refused as error:
            raise Unusable(
                error.message.replace("signing_key", "--signing-key").replace(
                    "event_type", "--event"
                )
            ) from None  # the receiver breaks no rule
    target.show(report, _certificate_text(report))
    sys.exit({True: 0, False: 1, None: 3}[report["passed"]])


def _certificate_text(report: Body) -> str:
    counts = []
    for result, count in report["summary"].items():
        counts.append(f"{count} {result.replace('_', ' ')}")
    text = (
        f"{report['url']} was sent {report['event_type']} and watched in the sandbox"
        f" {report['sandbox']}: {', '.join(counts)}."
    )
    found = [rule for rule in report["rules"] if rule["result"] in ("failed", "unknown")]
    if found:
        text += f"\n\n{yaml_text(found)}"
    if report["passed"] is None:
        text += (
            "\n\nThe receiver has not passed while a rule is unknown. `received` says why it is."
            " Give --effects URL or --effects-command COMMAND: a number that each processed"
            " delivery changes, such as a count of orders. Or have the receiver change something"
            " through the sandbox's API while it is certified."
        )
    return text


def listen(target: Target, forward_to: str | None, events: str, show: bool) -> None:
    """Forward the events of a sandbox to a receiver, signed with a key that is printed, until
    interrupted.
    """
    import signal

    if forward_to is None and not show:
        raise click.UsageError(
            "Give --forward-to URL to forward the events, or --print to show them."
        )
    patterns = events.replace(",", " ").split()
    if not patterns:
        raise click.UsageError("--events names no type.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    failures = 0
    try:
        key, after = _begin(target, patterns, forward_to)
        for event in _follow(target, after, patterns):
            outcome = None
            if forward_to is not None:
                failures += 1  # until the event has arrived: an interrupt may end the wait
                outcome = asyncio.run(_forward(event, forward_to, key))
                # before its line: who reads that may interrupt at once
                failures -= outcome.error is None
            _print(target, event, outcome, with_payload=show)
    except KeyboardInterrupt:
        sys.exit(1 if failures else 0)
    except Refused as error:
        if error.code == "sandbox_not_found":
            raise
        raise Unusable(f"--events: {error.message}") from None


def _begin(target: Target, patterns: Sequence[str], to: str | None) -> tuple[str, str]:
    """Print the signing key.

    Returns it, and the present position in the events. Raises Away, Refused.
    """
    from ..core.ids import keyed_digest
    from ..core.signing import new_key

    credentials = target.control("GET", "/credentials")
    # The same for a sandbox each time, so that a receiver can keep it.
    key = new_key(keyed_digest(credentials["private_key"].encode(), b"stub-server listen"))
    after = target.control("GET", "/events", params={"wait": 0, "type": patterns})["next"]
    answer = {"sandbox": credentials["sandbox"], "forward_to": to, "signing_key": key}
    text = f"Events of the sandbox {credentials['sandbox']}"
    if to is not None:
        text += f" go to {to}, signed with {key}"
    target.show(answer, text)
    return key, after


def _follow(target: Target, after: str, patterns: Sequence[str]) -> Iterator[Body]:
    """The events that patterns name since a position, in their order, without end.

    Raises Refused.
    """
    is_away = False
    while True:
        query = {"after": after, "wait": _WAIT, "limit": 100, "type": patterns}
        try:
            page = target.control("GET", "/events", params=query)
        except Away:
            if not is_away:
                _notice("The server does not answer. Trying again every second.")
            is_away = True
            sleep(_PAUSE)
            continue
        is_away = False
        if page["began_anew"]:
            _notice("The sandbox was reset or rewound, or the server restarted.")
        if page["missed"]:
            _notice(f"Missed: {counted(page['missed'], 'event')}, no longer stored.")
        yield from page["events"]
        after = page["next"]


def _print(
    target: Target, event: Body, outcome: "AttemptOutcome | None", *, with_payload: bool
) -> None:
    """Print a line about an event, and how it was forwarded, if it was."""
    line = {"time": event["timestamp"], "type": event["type"], "id": event["id"]}
    line |= {"status": None, "error": None, "ms": None}
    text = f"{event['timestamp']}  {event['type']}"
    if outcome is not None:
        line |= {"status": outcome.status, "error": outcome.error, "ms": outcome.duration_ms}
        text += f"  {outcome.status or outcome.error}  {outcome.duration_ms} ms"
    if with_payload:
        line["event"] = event
        text += f"\n{orjson.dumps(event).decode()}"
    target.show(line, text)


async def _forward(event: Body, to: str, key: str) -> "AttemptOutcome":
    """Deliver an event, again and again until the receiver accepts a connection."""
    from ..domain.deliveries import Delivery
    from ..webhooks.sender import Sender

    sender, is_away = Sender(local=True), False
    delivery = Delivery(to, event["id"], orjson.dumps(event), (), (key,))
    while True:
        outcome = await sender.attempt(delivery, _ATTEMPT)
        if outcome.error not in ("connection_refused", "dns"):
            return outcome
        if not is_away:
            _notice(f"No answer from {to} ({outcome.error}). Trying again every second.")
        is_away = True
        await asyncio.sleep(_PAUSE)


def _notice(text: str) -> None:
    click.echo(text, err=True)
