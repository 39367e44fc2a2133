"""The verbs `certify` and `listen`: their flags, and their exit codes 0 fine, 1 findings, 2 usage."""

import sys

import click

from .options import BaseUrl, Unusable, of_a_server

_SETTINGS = {"auto_envvar_prefix": "STUB", "show_default": True}


@click.command(context_settings=_SETTINGS)
@click.argument("url", type=BaseUrl(with_query=True))
@click.option(
    "--signing-key", metavar="KEY", help="The receiver's key; without it that of the webhook at this address."
)
@click.option("--event", "event_type", metavar="TYPE", help="The event that the receiver acts upon.")
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
    """Judge the receiver of webhooks at URL. Exit code 1 when it breaks a rule.

    The server sends it what receivers get wrong and watches what it does to the API of the sandbox, which nobody else
    should use for these seconds. What the receiver does there is done: give it a sandbox of its own.
    """
    import asyncio
    import json

    from .certify import certificate, text
    from .server import Away, Refused, RunningServer

    async def judged() -> dict[str, object]:
        async with RunningServer(server, sandbox, admin_key) as running:
            return await certificate(running, url, signing_key, event_type)

    try:
        report = asyncio.run(judged())
    except (Away, Refused) as error:
        raise Unusable(str(error)) from None
    click.echo(json.dumps(report, ensure_ascii=False) if as_json else text(report))
    sys.exit(0 if report["passed"] else 1)
