"""The command `stub-server`: turns flags and environment variables into settings, and starts the server."""

import gc
import re
import sys
from contextlib import suppress
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click

from .commands.act_verbs import VERBS
from .commands.explain import explain
from .commands.faults import faults
from .commands.file_verbs import export, import_
from .commands.init import init
from .commands.options import BaseUrl, Number, Unusable, of_overlays
from .commands.proxy import proxy
from .commands.record_verbs import record, replay
from .commands.request_verbs import requests
from .commands.token import token
from .commands.travel_verbs import fork, rewind, snapshot, worlds
from .commands.verbs import certify, listen
from .commands.verify import verify
from .kernel.clock import EARLIEST_START, LATEST_START, parse_iso
from .settings import Settings
from .version import __version__


class DefaultCommand(click.Group):
    """A group whose verb may be left out: `stub-server --port 0` is `stub-server serve --port 0`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `serve` before flags that belong to it."""
        if not args or (args[0].startswith("-") and args[0] not in ("--help", "-h", "--version")):
            args = ["serve", *args]
        return super().parse_args(ctx, args)


class Instant(click.ParamType[int]):
    """An RFC 3339 date-time with an offset, as milliseconds since 1970."""

    name = "ISO8601"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Fail, with an example, for any other text."""
        if isinstance(value, int):
            return value
        try:
            now = parse_iso(value)
        except ValueError:
            self.fail(f"{value!r} is not a date-time with an offset, such as 2026-11-20T14:32:05Z.", param, ctx)
        if not EARLIEST_START <= now < LATEST_START:
            self.fail(f"{value} is out of reach: a world begins between 1970 and 8999.", param, ctx)
        return now


class Rate(click.ParamType[tuple[int, int]]):
    """A rate limit such as 100/60s, as (requests, seconds)."""

    name = "N/60s"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Fail for any other text."""
        found = re.fullmatch(r"([1-9][0-9]{0,6})/([1-9][0-9]{0,5})s", str(value))
        if found is None:
            self.fail(f"{value!r} is not a rate such as 100/60s.", param, ctx)
        return int(found[1]), int(found[2])


class Host(click.ParamType[str]):
    """A name or address as in a Host header."""

    name = "HOST"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Fail for text that a Host header cannot contain."""
        from .http.access import host_name

        if host_name(str(value)) is None:
            self.fail(f"{value!r} is not a host such as sandbox.example.com.", param, ctx)
        return str(value)


@click.group(cls=DefaultCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="stub-server")
def main() -> None:
    """A contract-first, stateful sandbox of the Membership Commerce Service API, version 2.

    Without a command it serves. Every flag of serve has an environment variable, such as STUB_PORT for --port.
    """


@main.command(context_settings={"auto_envvar_prefix": "STUB", "show_default": True})
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=Number(0, 65535), default=4600, help="Port to listen on; 0 picks a free one.")
@click.option("--base-url", type=BaseUrl(), help="URL of the server that answers show, if not host and port.")
@click.option("--seed", type=Number(0, 2**63 - 1), default=42, help="The same seed gives the same data.")
@click.option("--scenario", default="default", help="The data to begin with, by name or file.")
@click.option("--now", type=Instant(), help="Freeze the sandbox clock at this instant; without it the clock runs.")
@of_overlays
@click.option(
    "--auth", type=click.Choice(["strict", "lenient"]), default="strict", help="lenient accepts any bearer token."
)
@click.option(
    "--unknown-fields", type=click.Choice(["reject", "ignore"]), default="reject", help="Unknown fields of bodies."
)
@click.option(
    "--unknown-query", type=click.Choice(["warn", "reject"]), default="warn", help="Unknown query parameters."
)
@click.option("--check-digits", type=click.Choice(["on", "off"]), default="on", help="Check those of CPF and CNPJ.")
@click.option("--autopay", type=Number(0), metavar="SECONDS", help="Pay orders after this time of the sandbox clock.")
@click.option(
    "--webhook-schedule",
    type=click.Choice(["standard", "fast", "none"]),
    default="standard",
    help="When failed deliveries are retried.",
)
@click.option("--history", type=Number(0), default=10_000, help="Number of steps that a sandbox keeps.")
@click.option(
    "--journal",
    type=Number(0, 1_000_000),
    default=2_000,
    help="Number of requests that a sandbox keeps; 0 keeps no bodies.",
)
@click.option(
    "--store",
    default="memory",
    metavar="memory|DIR|postgresql://…",
    help="A directory keeps sandboxes across restarts, a database for many servers.",
)
@click.option(
    "--sync",
    type=click.Choice(["interval", "always"]),
    default="interval",
    help="With --store: write to disk every 100 ms, or always before the answer.",
)
@click.option(
    "--resident",
    type=click.IntRange(1, 100_000),
    default=1_000,
    metavar="N",
    help="With --store: most sandboxes in memory. The longest unused are opened again when they are asked for.",
)
@click.option("--salvage", is_flag=True, help="Open a damaged --store; damaged files are moved to DIR/damaged-1.")
@click.option(
    "--restore",
    type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
    help="Begin the default sandbox with an exported file, unless --store has one.",
)
@click.option(
    "--drop-unfit",
    is_flag=True,
    help="Leave out records of --store and --restore that do not fit the contract.",
)
@click.option(
    "--cors-origin",
    "cors_origins",
    envvar="STUB_CORS_ORIGIN",
    multiple=True,
    help="Origin whose pages may read answers, or *; repeatable.",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    envvar="STUB_ALLOW_HOST",
    type=Host(),
    multiple=True,
    help="Host that a server on loopback also accepts; repeatable.",
)
@click.option("--allow-private-webhooks", is_flag=True, help="On a public --host, deliver to private networks too.")
@click.option("--max-connections", type=Number(1), default=512, help="Past these, the one idle longest is closed.")
@click.option("--rate-limit", type=Rate(), help="Requests per caller; the next is 429.")
@click.option("--admin-key", metavar="KEY", help="Require this key for /_sandbox.")
@click.option("--jwt-secret", metavar="TEXT", help="Secret that signs tokens.")
@click.option(
    "--log",
    type=click.Choice(["requests", "quiet", "json"]),
    default="requests",
    help="A line per request, none, or JSON.",
)
@click.option("--reload", is_flag=True, help="Restart when contract, fixtures or code change.")
def serve(
    auth: str,
    unknown_fields: str,
    unknown_query: str,
    check_digits: str,
    store: str,
    jwt_secret: str | None,
    reload: bool,
    **plain: Any,
) -> None:
    """Start the sandbox."""
    is_database = store.startswith(("postgresql://", "postgres://"))
    if "://" in store and not is_database:
        raise Unusable(f"--store {store.partition(':')[0]}: a store is memory, a directory or postgresql://…")
    if not reload:
        # Objects made at start stay, so collecting would be wasted. The server turns the collector on.
        gc.disable()
    from . import serving

    settings = Settings(
        **plain,
        lenient_auth=auth == "lenient",
        ignore_unknown=unknown_fields == "ignore",
        reject_unknown_query=unknown_query == "reject",
        check_digits=check_digits == "on",
        store=None if store == "memory" else store if is_database else Path(store),
        secret=jwt_secret.encode() if jwt_secret else None,
    )
    try:
        (serving.serve_reloading if reload else serving.serve)(settings)
    except serving.CannotServe as error:
        raise Unusable(str(error)) from None
    finally:
        gc.enable()


@main.command(short_help="Check against OpenAPI 3.0.", context_settings={"auto_envvar_prefix": "STUB"})
@of_overlays
def check(overlays: tuple[Path, ...]) -> None:
    """Check the contract, with overlays, against OpenAPI 3.0 and count its parts.

    Exit code 1 for what stops the start, and for an event that nothing raises, a link that leads nowhere and the like,
    with which a server still starts. An example that does not fit its schema is a warning.
    """
    from .app import create_app, data_dir
    from .contract import bundle, compatibility, extensions, lint
    from .contract.document import Document
    from .contract.formats import formats
    from .contract.source import ContractError, json_path
    from .domain.documents import is_document_here, is_document_unchecked
    from .scenarios.scenario import ScenarioError

    doubtful: list[str] = []
    try:
        document = Document(bundle.load(data_dir("openapi") / "openapi.yaml", overlays))
        control = Document(bundle.load(data_dir("openapi") / "sandbox.yaml", names_of=document.raw))
        shipped = Document(bundle.load(data_dir("openapi") / "openapi.yaml"))
        extensions.check(document, overlays, shipped)
        compatibility.check(document, shipped, overlays)
        extensions.check(control)
        counts = {
            "operations": len(document.operations),
            "schemas": len(document.raw["components"]["schemas"]),
            "events": len(document.events),
            "scopes": len(document.scopes),
            "lifecycles": len(document.lifecycles),
            "control operations": len(control.operations),
        }
        found = [
            f"{json_path(['x-webhooks', event])}: nothing raises {event}: name it in x-lifecycle or x-events of its "
            "resource, or take it out"
            for event in lint.unraised(document)
        ]
        found += [str(bundle.name_overlays(overlays, e, shipped.raw)) for e in lint.faults(document, control)]
        unfit = lint.unfit_examples(document, formats(is_document_here, is_document_unchecked))
        doubtful = [str(bundle.name_overlays(overlays, e, shipped.raw)) for e in unfit]
        if overlays:
            with suppress(ScenarioError):  # what the data asks for is no fault of the contract
                create_app(Settings(overlays=overlays))
    except ContractError as error:
        found = [str(error)]
    for fault in doubtful:
        click.echo(f"Warning: {fault}", err=True)
    for fault in found:
        click.echo(f"Error: {fault}", err=True)
    if found:
        sys.exit(1)
    click.echo("The contract is valid OpenAPI 3.0: " + ", ".join(f"{n} {name}" for name, n in counts.items()) + ".")


@main.command(short_help="List what the source does not say.", context_settings={"auto_envvar_prefix": "STUB"})
@of_overlays
@click.option("--all", "every_field", is_flag=True, help="Every field, not only how many there are.")
@click.option("--json", "as_json", is_flag=True, help="The JSON of /_sandbox/assumptions.")
def assumptions(overlays: tuple[Path, ...], every_field: bool, as_json: bool) -> None:
    """Print what the source document does not show and how it was decided, operation by operation."""
    import orjson

    from . import report
    from .app import data_dir
    from .contract import bundle
    from .contract.assumptions import assumptions_of
    from .contract.document import Document
    from .contract.source import ContractError

    try:
        document = Document(bundle.load(data_dir("openapi") / "openapi.yaml", overlays))
        found = assumptions_of(document)
    except ContractError as error:
        raise Unusable(str(error)) from None
    if as_json:
        click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2))
        return
    width = get_terminal_size((report.WIDEST, 24)).columns
    for line in report.lines(found, document, width, every_field=every_field):
        click.echo(line)


for verb in (
    token,
    certify,
    explain,
    faults,
    requests,
    listen,
    proxy,
    worlds,
    fork,
    snapshot,
    rewind,
    init,
    export,
    import_,
    record,
    replay,
    verify,
    *VERBS,
):
    main.add_command(verb)
