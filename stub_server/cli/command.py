"""The command `stub-server`: its verbs, and `serve`, which turns flags and environment variables
into settings.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from ..contract.source import fixture
from ..core.problem import UnusableInput
from ..settings import Settings
from ..version import __version__, installed_commit
from . import described, process
from .options import Unusable


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
        raise Unusable(f"{error}{_from_environment()}") from None
    except click.BadParameter as error:
        message = f"{error.format_message()}{_from_environment()}"
        raise click.UsageError(message, error.ctx) from None
    except KeyboardInterrupt:
        context.exit(process.INTERRUPTED)
    except BrokenPipeError:
        process.discard_output()
        context.exit(process.CLOSED_PIPE)


def _from_environment() -> str:
    """A line with the variables that are set for this command, of which one may be wrong; empty
    without any.
    """
    found = [name for name in os.environ if name.startswith("STUB_")]
    if not found:
        return ""
    return f"\n  Set in the environment: {', '.join(found)}"


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


def serve(
    host: str | None,
    jwt_secret: str | None,
    stop_on_eof: bool,
    reload: bool,
    **plain: Any,
) -> None:
    """Start the sandbox."""
    if reload and plain["stop_after_idle"] is not None:
        message = "--reload would restart what --stop-after-idle stops. Leave one of them out."
        raise click.UsageError(message)
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
    finally:
        gc.enable()


for name, about in fixture("command.yaml")["verbs"].items():
    main.add_command(described.verb(name, about))
