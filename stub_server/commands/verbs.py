"""The verbs `certify` and `listen`: their flags, and their exit codes 0 fine, 1 findings, 2 usage."""

import sys
from contextlib import suppress

import click

from .options import BaseUrl, Refusing, Unusable, of_a_server, tell

_SETTINGS = {"auto_envvar_prefix": "STUB", "show_default": True}


@click.command(context_settings=_SETTINGS)
@click.argument("url", type=BaseUrl(with_query=True))
@click.option("--signing-key", metavar="KEY", help="The receiver's key, if no webhook has this address.")
@click.option("--event", "event_type", metavar="TYPE", help="The event that the receiver handles.")
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def certify(
    url: str,
    signing_key: str | None,
    event_type: str | None,
    server: str,
    sandbox: str,
    admin_key: str | None,
    as_json: bool,
) -> None:
    """Test the receiver of webhooks at URL. Exit code 1 if it breaks a rule.

    The server sends it difficult deliveries and watches its calls to the API of the sandbox. These calls change the
    sandbox, and nobody else should use it for these seconds: choose a separate one with --sandbox.
    """
    import asyncio

    from .certify import certificate, text
    from .server import Away, Refused, RunningServer

    async def judged() -> dict[str, object]:
        async with RunningServer(server, sandbox, admin_key) as running:
            if signing_key is None:  # else the receiver is judged in a sandbox that may be new
                await running.check_sandbox()
            return await certificate(running, url, signing_key, event_type)

    try:
        report = asyncio.run(judged())
    except (Away, Refused) as error:
        raise Unusable(str(error)) from None
    tell(report, text(report), as_json=as_json)
    sys.exit(0 if report["passed"] else 1)


@click.command(context_settings=_SETTINGS)
@click.option("--forward-to", type=BaseUrl(with_query=True), help="The receiver that gets every event.")
@click.option("--events", metavar="TYPES", default="*", help="Types or patterns such as order.*, separated by commas.")
@click.option("--print", "show", is_flag=True, help="Print each event with its payload.")
@of_a_server
@click.option("--json", "as_json", is_flag=True, help="A JSON object for every line.")
def listen(
    forward_to: str | None,
    events: str,
    show: bool,
    server: str,
    sandbox: str,
    admin_key: str | None,
    as_json: bool,
) -> None:
    """Forward the events of a sandbox to a receiver, signed with a key that is printed, until interrupted.

    It needs no webhook. While the server or the receiver is down it waits; no event is lost or sent twice. Exit code 1
    if the receiver rejected an event, or if there is no such sandbox.
    """
    import asyncio
    import signal

    from .listen import Listener, Wanted
    from .server import Away, Refused, RunningServer

    if forward_to is None and not show:
        raise click.UsageError("Say where events go, --forward-to URL, or show them with --print.")
    patterns = tuple(part.strip() for part in events.split(",") if part.strip())
    if not patterns:
        raise click.UsageError("--events names no type.")

    async def followed() -> int:
        async with RunningServer(server, sandbox, admin_key) as running:
            await running.check_sandbox()
            wanted = Wanted(patterns, forward_to, show, as_json)
            listener = Listener(running, wanted, click.echo, lambda text: click.echo(text, err=True))
            following = asyncio.current_task()
            assert following is not None
            for number in (signal.SIGINT, signal.SIGTERM):
                with suppress(NotImplementedError):  # Windows interrupts in another way
                    asyncio.get_running_loop().add_signal_handler(number, following.cancel)
            try:
                await listener.begin()
                await listener.follow()
            except asyncio.CancelledError:
                return listener.failures
        raise AssertionError("following does not end by itself")

    try:
        failures = asyncio.run(followed())
    except (Away, Refused) as error:
        is_none = isinstance(error, Refused) and error.code == "sandbox_not_found"
        raise (Refusing if is_none else Unusable)(str(error)) from None
    sys.exit(1 if failures else 0)
