"""The verbs `certify` and `listen`, for receivers of webhooks; exit codes 0 fine, 1 findings, 2 usage or no server."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..kernel.text import counted
from .options import BaseUrl, Refusing, Target, Unusable, asks_sandbox, given, json_text, printable, verb

if TYPE_CHECKING:
    from .running_server import RunningServer

_WAIT = 25  # seconds that a request waits for an event
_ATTEMPT = 15.0  # seconds that the receiver has
_PAUSE = 1.0  # seconds before the next try to connect to a server or a receiver
_SHOWN = {"passed": "passed", "failed": "FAILED", "not_applicable": "n/a", "unknown": "unknown"}

Event = dict[str, Any]


@verb(short_help="Test a receiver of webhooks.")
@click.argument("url", type=BaseUrl(with_query=True))
@click.option("--signing-key", metavar="KEY", help="The receiver's key, if no webhook has this address.")
@click.option("--event", "event_type", metavar="TYPE", help="The event that the receiver handles.")
@asks_sandbox
def certify(target: Target, url: str, signing_key: str | None, event_type: str | None) -> None:
    """Test the receiver of webhooks at URL. Exit code 1 if it breaks a rule.

    The server sends difficult deliveries to the receiver, and watches the calls that the receiver makes to the API of
    the sandbox. These calls change the sandbox, and nobody else should use it meanwhile: choose a separate sandbox
    with --sandbox.
    """
    from .running_server import Away, Refused

    async def judged(running: RunningServer) -> Any:
        body = given(event_type=event_type)
        if signing_key is not None:
            body |= {"url": url, "signing_key": signing_key}
            path = "/certify"
        else:
            path = f"/webhooks/{await _webhook_at(running, url)}/certify"
        return (await running.control("POST", path, json=body))["certificate"]

    try:  # with a key of its own the receiver is judged in a sandbox that may be new
        report = target.run(judged, may_be_new=signing_key is not None)
    except (Away, Refused) as error:
        raise Unusable(str(error)) from None
    target.show(report, _certificate_text(report))
    sys.exit(0 if report["passed"] else 1)


async def _webhook_at(running: RunningServer, url: str) -> str:
    """The id of the webhook with an address. Raises Unusable."""
    token = (await running.control("GET", "/credentials"))["jwt"]
    webhooks = (await running.api(token, "/v2/webhooks", params={"limit": 100}))["webhooks"]
    for webhook in webhooks:
        if webhook["url"] == url:
            return str(webhook["id"])
    raise Unusable(
        f"no webhook of the sandbox has this address. Register it (POST {running.base}/v2/webhooks), or give the "
        "receiver's key as --signing-key."
    )


def _certificate_text(report: dict[str, Any]) -> str:
    summary = report["summary"]
    lines = [
        f"{report['url']} was sent {report['event_type']} and watched in the sandbox {report['sandbox']}: "
        f"{summary['passed']} passed, {summary['failed']} failed, {summary['unknown']} unknown, "
        f"{summary['not_applicable']} not applicable ({report['duration_ms'] / 1000:.1f} s).",
        "",
    ]
    for rule in report["rules"]:
        lines.append(f"{_SHOWN[rule['result']]:<7} {rule['id']:<15} {rule['name']}")
        if rule["result"] in ("not_applicable", "unknown"):
            lines.append(f"{'':<23} because   {rule['received']}")
        elif rule["result"] == "failed":
            lines += [f"{'':<23} {name:<9} {rule[name]}" for name in ("sent", "received", "advice")]
    if summary["unknown"]:
        rules = "1 rule is" if summary["unknown"] == 1 else f"{summary['unknown']} rules are"
        lines += [
            "",
            f"{rules} unknown: the receiver made no call to the sandbox, so repeated work could not be seen. "
            "Have it act on the sandbox's API while it is certified.",
        ]
    return "\n".join(map(printable, lines))


@verb(short_help="Forward the events of a sandbox to a receiver.")
@click.option("--forward-to", type=BaseUrl(with_query=True), help="The receiver that gets every event.")
@click.option("--events", metavar="TYPES", default="*", help="Types or patterns such as order.*, separated by commas.")
@click.option("--print", "show", is_flag=True, help="Print each event with its payload.")
@asks_sandbox
def listen(target: Target, forward_to: str | None, events: str, show: bool) -> None:
    """Forward the events of a sandbox to a receiver, signed with a key that is printed, until interrupted.

    No webhook is needed. While the server or the receiver is down, the command waits; no event is lost or sent twice.
    Exit code 1 if the receiver rejected an event, or if there is no such sandbox.
    """
    import signal

    from .running_server import Away, Refused

    if forward_to is None and not show:
        raise click.UsageError("Give --forward-to URL to forward the events, or --print to show them.")
    patterns = tuple(part.strip() for part in events.split(",") if part.strip())
    if not patterns:
        raise click.UsageError("--events names no type.")
    wanted = _Wanted(patterns, forward_to, show, target.as_json)

    async def followed(running: RunningServer) -> int:
        listener = _Listener(running, wanted)
        following = asyncio.current_task()
        assert following is not None
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows interrupts in another way
                asyncio.get_running_loop().add_signal_handler(number, following.cancel)
        with suppress(asyncio.CancelledError):
            await listener.begin()
            await listener.follow()
        return listener.failures

    try:
        failures = target.run(followed)
    except (Away, Refused) as error:
        is_none = isinstance(error, Refused) and error.code == "sandbox_not_found"
        raise (Refusing if is_none else Unusable)(str(error)) from None
    sys.exit(1 if failures else 0)


class _Wanted(NamedTuple):
    """The `patterns` of events, where they are sent (None: nowhere), and whether each is shown whole."""

    patterns: tuple[str, ...]
    forward_to: str | None
    show: bool
    as_json: bool


class _Listener:
    """Follows one sandbox. `failures` counts the events that the receiver rejected."""

    def __init__(self, server: RunningServer, wanted: _Wanted) -> None:
        from ..events.sender import Sender
        from ..version import __version__

        self.failures = 0
        self._server, self._wanted = server, wanted
        self._sender = Sender(__version__, local=True)
        self._key = self._since = ""

    async def begin(self) -> None:
        """Take the present position in the feed, and print the signing key. Raises Away, Refused, Unusable."""
        import hashlib
        import hmac

        from ..events.signing import new_key

        credentials = await self._server.control("GET", "/credentials")
        # The same for a sandbox each time, so that a receiver can keep it.
        self._key = new_key(hmac.digest(credentials["private_key"].encode(), b"stub-server listen", hashlib.sha256))
        await self._check_patterns(credentials["jwt"])
        self._since = (await self._server.control("GET", "/events/feed"))["next"]
        sandbox, to = credentials["sandbox"], self._wanted.forward_to
        if self._wanted.as_json:
            click.echo(json_text({"sandbox": sandbox, "forward_to": to, "signing_key": self._key}))
        else:
            signed = f" go to {to}, signed with {self._key}" if to else ""
            click.echo(f"Events of the sandbox {sandbox}{signed}")

    async def follow(self) -> None:
        """Forward events in their order, until cancelled. Raises Refused."""
        from ..domain.webhooks import listens
        from .running_server import Away

        is_away = False
        while True:
            query = {"since": self._since, "wait_seconds": _WAIT, "limit": 100}
            try:
                page = await self._server.control("GET", "/events/feed", params=query)
            except Away:
                if not is_away:
                    _notice("The server does not answer. Trying again every second.")
                is_away = True
                await asyncio.sleep(_PAUSE)
                continue
            if is_away:
                _notice("The server is back.")
            is_away = False
            if page["began_anew"]:
                _notice("The sandbox was reset or rewound, or the server restarted.")
            if page["missed"]:
                verb = "is" if page["missed"] == 1 else "are"
                _notice(f"{counted(page['missed'], 'event')} {verb} no longer stored.")
            for event in page["events"]:
                if listens(self._wanted.patterns, event["type"]):
                    await self._handle(event)
            self._since = page["next"]

    async def _check_patterns(self, token: str) -> None:
        from difflib import get_close_matches

        contract = await self._server.api(token, "/openapi.json")
        known = contract["components"]["schemas"]["EventPattern"]["enum"]
        for pattern in self._wanted.patterns:
            if pattern not in known:
                similar = get_close_matches(pattern, known, 1)
                hint = f" Did you mean {similar[0]}?" if similar else f" Known are {', '.join(known)}."
                raise Unusable(f"no event is called {pattern}.{hint}")

    async def _handle(self, event: Event) -> None:
        status, error, duration = None, None, 0
        if self._wanted.forward_to is not None:
            self.failures += 1  # until the event has arrived: an interrupt may end the wait
            status, error, duration = await self._forward(event, self._wanted.forward_to)
            self.failures -= error is None
        click.echo(self._line(event, status, error, duration))

    async def _forward(self, event: Event, to: str) -> tuple[int | None, str | None, int]:
        """Deliver an event, again and again until the receiver accepts a connection."""
        import orjson

        from ..events.sender import Delivery

        delivery = Delivery(to, event["id"], orjson.dumps(event), (), (self._key,))
        is_away = False
        while True:
            outcome = await self._sender.attempt(delivery, _ATTEMPT)
            if outcome.error not in ("connection_refused", "dns"):
                if is_away:
                    _notice("The receiver is back.")
                return outcome.status, outcome.error, outcome.duration_ms
            if not is_away:
                _notice(f"No answer from {to} ({outcome.error}). Trying again every second.")
            is_away = True
            await asyncio.sleep(_PAUSE)

    def _line(self, event: Event, status: int | None, error: str | None, duration: int) -> str:
        if self._wanted.as_json:
            line = {"time": event["timestamp"], "type": event["type"], "id": event["id"], "status": status}
            line |= {"error": error, "ms": duration if self._wanted.forward_to else None}
            return json_text(line | ({"event": event} if self._wanted.show else {}))
        text = f"{event['timestamp']}  {event['type']:<26}"
        if self._wanted.forward_to is not None:
            text += f"  {status or error}  {duration} ms"
        return text.rstrip() + (f"\n{json_text(event)}" if self._wanted.show else "")


def _notice(text: str) -> None:
    click.echo(text, err=True)
