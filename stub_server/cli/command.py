"""The command `stub-server`: its verbs, and `serve`, which turns flags and environment variables
into settings.
"""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from ..core.problem import UnusableInput
from ..settings import Settings
from ..version import __version__, installed_commit
from . import (
    control_verbs,
    kinds,
    mcp_verb,
    offline_verbs,
    process,
    receiver_verbs,
    replay_verb,
    request_verbs,
    sandbox_verbs,
    verify,
)
from .options import EXISTING, F, Number, Unusable, UserPath, of_overlays, url, variable_of, verb


class DefaultCommand(click.Group):
    """A group whose verb may be left out:

    `stub-server --port 0` is `stub-server serve --port 0`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `serve` before flags that belong to it."""
        is_flag = not args or (
            args[0].startswith("-") and args[0] not in ("--help", "-h", "--version")
        )
        if is_flag and not ctx.resilient_parsing:  # completion is about the verbs
            args = ["serve", *args]
        with _ending(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb."""
        with _ending(ctx):
            return super().invoke(ctx)


@contextmanager
def _ending(context: click.Context) -> Iterator[None]:
    """How every verb ends early: what cannot be used with exit code 2, and an interrupt or a closed
    pipe in silence.
    """
    try:
        yield
    except UnusableInput as error:
        raise Unusable(str(error)) from None
    except click.BadParameter as error:
        if error.param is not None and error.ctx is not None:
            error.param_hint = error.param_hint or variable_of(error.param, error.ctx)
        raise
    except KeyboardInterrupt:
        context.exit(process.INTERRUPTED)
    except BrokenPipeError:
        process.discard_output()
        context.exit(process.CLOSED_PIPE)


def _show_version(context: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        text, commit = f"stub-server, version {__version__}", installed_commit()
        if commit is not None:
            text += f" (commit {commit})"
        click.echo(text)
        context.exit()


@click.group(cls=DefaultCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def main() -> None:
    """A contract-first, stateful sandbox of the Membership Commerce Service API, version 2.

    Without a command, `serve` runs. Every flag of serve has an environment variable, such as
    STUB_PORT for --port.

    Exit codes: 0 done, or a server stopped by SIGTERM, SIGHUP, Ctrl-C or --stop-after-idle; 1 the
    server refused the request, or the command found a difference; 2 wrong usage, an unusable file,
    no server, or a port in use; 3 verify covered too little, or certify could not check a rule; 130
    interrupted by Ctrl-C; 141 the output was closed.
    """


def _one_of(flag: str, values: str, text: str) -> Callable[[F], F]:
    """A flag with a closed list of values, of which the first is the default."""
    first, *others = values.split()
    return click.option(flag, type=click.Choice([first, *others]), default=first, help=text)


@verb()
@click.option(
    "--host",
    show_default="127.0.0.1 and ::1",
    help="Address or name to listen on. A name stands for all its addresses; :: includes IPv4.",
)
@click.option(
    "--port",
    type=Number(0, 65535),
    default=4600,
    help="Port to listen on; 0 picks a free one and prints it.",
)
@click.option(
    "--base-url",
    type=url,
    metavar="URL",
    help="URL by which clients reach this server. Default: host and port.",
)
@click.option(
    "--seed", type=Number(0, 2**63 - 1), default=42, help="The same seed gives the same data."
)
@click.option(
    "--scenario",
    type=os.path.expanduser,
    default="default",
    metavar="NAME|FILE",
    help="The data to begin with, by name or file.",
)
@click.option(
    "--now",
    type=kinds.instant,
    metavar="ISO8601",
    help="Freeze the sandbox clock at this instant; without it the clock runs.",
)
@of_overlays
@_one_of(
    "--auth",
    "strict lenient",
    "lenient accepts any bearer token, with all rights of the seeded merchant.",
)
@_one_of(
    "--unknown-fields",
    "reject ignore",
    "Unknown fields of bodies: reject answers 422, ignore drops them.",
)
@_one_of(
    "--unknown-query",
    "warn reject",
    "Unknown query parameters: warn names them in X-Sandbox-Warnings, reject answers 422.",
)
@click.option(
    "--check-digits",
    type=bool,
    default=True,
    show_default="on",
    metavar="on|off",
    help="off accepts CPF and CNPJ with wrong check digits.",
)
@click.option(
    "--autopay",
    type=Number(0),
    metavar="SECONDS",
    help="Pay PIX and boleto orders after this time of the sandbox clock.",
)
@_one_of("--webhook-schedule", "standard fast none", "When failed deliveries are retried.")
@click.option(
    "--history",
    type=Number(0),
    default=10_000,
    help="Number of steps that each sandbox stores for rewinds.",
)
@click.option(
    "--journal",
    type=Number(0, 1_000_000),
    default=2_000,
    help="Number of requests that a sandbox keeps; 0 keeps 2,000, without headers and bodies.",
)
@click.option(
    "--store",
    type=kinds.store,
    default="memory",
    metavar="memory|DIR|postgresql://…",
    help="Keep sandboxes across restarts: in a directory, or in a database that servers share.",
)
@_one_of(
    "--sync",
    "interval always",
    "With --store: write to disk every 100 ms, or always before the answer.",
)
@click.option(
    "--restore",
    type=EXISTING,
    help="Exported file to load as the default sandbox, unless the store already has one.",
)
@click.option(
    "--cors-origin",
    "cors_origins",
    envvar="STUB_CORS_ORIGIN",
    multiple=True,
    help="Further origin whose pages may read answers; * for all; repeatable.",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    envvar="STUB_ALLOW_HOST",
    type=kinds.host,
    multiple=True,
    metavar="HOST",
    help="Host that a server on loopback also accepts; repeatable.",
)
@click.option(
    "--allow-private-webhooks",
    is_flag=True,
    help="On a public --host, deliver webhooks to private networks and this machine too.",
)
@click.option(
    "--forwarded-allow-ips",
    type=kinds.proxies,
    metavar="IP,…",
    help="Trust X-Forwarded-For from these proxies: addresses and networks.",
)
@click.option(
    "--webhook-cacert",
    type=EXISTING,
    callback=kinds.authorities,
    help="More certificate authorities (PEM) to trust when webhooks are delivered.",
)
@click.option(
    "--max-connections",
    type=Number(1),
    default=512,
    help="Maximum number of connections. At the limit, the one idle longest is closed.",
)
@click.option(
    "--max-streams",
    type=Number(1, 10_000),
    default=64,
    help="Maximum number of readers of event streams; one sandbox has at most an eighth.",
)
@click.option(
    "--rate-limit",
    type=kinds.rate,
    metavar="N/60s",
    help="Maximum number of requests of a caller in this time; further ones are answered 429.",
)
@click.option(
    "--admin-key",
    metavar="KEY",
    help="Require this key for /_sandbox. Without one, a public --host answers 403 there.",
)
@click.option(
    "--jwt-secret",
    metavar="TEXT",
    help=(
        "Secret that signs tokens and keys. Default: made from the seed; on a public server the"
        " store's, or random."
    ),
)
@_one_of(
    "--log",
    "requests quiet json",
    "Log on standard error: a line for each request, nothing, or JSON.",
)
@click.option(
    "--ready-file",
    type=UserPath(dir_okay=False),
    metavar="FILE",
    help="Write url, token, pid and ids to this file once the server is ready, until it stops.",
)
@click.option(
    "--stop-after-idle",
    type=Number(1),
    metavar="SECONDS",
    help="Stop after this time without a request or an open stream.",
)
@click.option(
    "--stop-on-eof",
    is_flag=True,
    help="Stop when standard input ends, such as when the parent process ends.",
)
@click.option(
    "--reload", is_flag=True, help="Restart when contract, overlays, scenario or code change."
)
def serve(
    host: str | None,
    jwt_secret: str | None,
    stop_on_eof: bool,
    reload: bool,
    **plain: Any,
) -> None:
    """Start the sandbox."""
    stopping = "--stop-on-eof" if stop_on_eof else "--stop-after-idle"
    if reload and (stop_on_eof or plain["stop_after_idle"] is not None):
        raise click.UsageError(
            f"--reload would restart what {stopping} stops. Leave one of them out."
        )
    if not reload:
        # Objects made at start stay, so collecting would be wasted. The server turns the collector
        # on.
        gc.disable()
    from . import serving

    if stop_on_eof:
        serving.stop_on_eof()
    if host is not None:
        plain["host"] = host
    if jwt_secret:
        plain["secret"] = jwt_secret.encode()
    try:
        serving.serve(Settings(**plain, also_ipv6=host is None), reloads=reload)
    except UnusableInput as error:
        raise UnusableInput(f"{error}{_from_environment()}") from None
    finally:
        gc.enable()


def _from_environment() -> str:
    """A line that names the variables that options of this command come from; empty if none do."""
    context, found = click.get_current_context(), []
    for option in context.command.params:
        name = variable_of(option, context)
        if name is not None:
            found.append(name)
    if not found:
        return ""
    return f"\n  Read from the environment: {', '.join(found)}"


for each in (
    serve,
    offline_verbs.backup,
    offline_verbs.check,
    offline_verbs.init,
    *control_verbs.VERBS,
    *sandbox_verbs.VERBS,
    *request_verbs.VERBS,
    receiver_verbs.listen,
    receiver_verbs.certify,
    replay_verb.replay,
    verify.verify,
    verify.proxy,
    mcp_verb.mcp,
):
    main.add_command(each)
