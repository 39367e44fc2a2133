"""The verb `verify`; exit codes 0 conforms, 1 diverges, 2 could not run, 3 reached too little."""

from __future__ import annotations

import sys
from pathlib import Path
from urllib.parse import urlsplit

import click

from ..kernel.hosts import is_local
from .options import Unusable, of_overlays


@click.command()
@click.argument("url")
@click.option("--token", envvar="STUB_VERIFY_TOKEN", required=True, help="The credential of the backend.")
@click.option("--write", is_flag=True, help="Make records of its own, change and delete them.")
@click.option("--charges", is_flag=True, help="Place orders and send test deliveries too, which may cost money.")
@click.option("--only", multiple=True, metavar="NAME", help="An operationId, a tag or a class. Repeatable.")
@click.option("--skip", multiple=True, metavar="NAME", help="The same, to leave out.")
@click.option("--budget", type=click.FloatRange(1, 86_400), default=120.0, show_default=True, metavar="SECONDS")
@click.option("--settle", type=click.FloatRange(0, 60), default=2.0, show_default=True, metavar="SECONDS",
              help="For how long a read may fail to show a change.")  # fmt: skip
@click.option("--coverage", type=click.FloatRange(0, 100), default=90.0, show_default=True, metavar="PERCENT",
              help="How much must be reached for exit code 0.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**31), default=42, show_default=True)
@of_overlays
@click.option("--header", "headers", multiple=True, metavar="'Name: value'", help="Sent with every request.")
@click.option("--cacert", type=click.Path(exists=True, dir_okay=False), help="Certificates to trust.")
@click.option("--report", "reports", multiple=True, metavar="FORM[=FILE]",
              help="text, json, html, junit or sarif.", default=("text",))  # fmt: skip
@click.option("--write-overlay", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Correct the contract where an overlay can, each action proved.")  # fmt: skip
@click.option("--baseline", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="REPORT.json",
              help="Hide the divergences of an earlier report.")  # fmt: skip
@click.option("--yes", metavar="HOST", help="Write to this host without a question.")
def verify(
    url: str,
    token: str,
    write: bool,
    charges: bool,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    budget: float,
    settle: float,
    coverage: float,
    seed: int,
    overlays: tuple[Path, ...],
    headers: tuple[str, ...],
    cacert: str | None,
    reports: tuple[str, ...],
    write_overlay: Path | None,
    baseline: Path | None,
    yes: str | None,
) -> None:
    """Find where the backend at URL, the parent of /v2, departs from the contract and from this sandbox.

    It is only read, unless --write is given.
    """
    host = _host(url)
    if write and not is_local(host) and yes != host:
        _ask(host)
    import asyncio

    from ..app import data_dir
    from ..verify.baseline import known
    from ..verify.correcting import Correcting
    from ..verify.forms import overlay
    from ..verify.reporting import forms_of, report_of, save, written
    from ..verify.run import Options, Runner
    from ..verify.where import Where

    forms = forms_of(reports)
    hidden = known(baseline) if baseline is not None else set()
    options = Options(
        url, token, write, charges, only, skip, budget, settle, seed, overlays, tuple(map(_header, headers)), cacert
    )
    with click.progressbar(length=1, file=sys.stderr, label=f"Comparing {host}") as bar:

        def progress(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        runner = Runner(options, progress)
        learned = asyncio.run(runner.run())
        report = report_of(learned, runner.document, options, hidden, coverage)
        where = Where(data_dir("openapi"), runner.document, overlays)
        if write_overlay is not None and not learned.away:
            asyncio.run(Correcting(runner, progress).correct(report, learned.findings))
    if write_overlay is not None:
        save(write_overlay, overlay.render(report, where))
    for text in written(report, where, forms):
        click.echo(text)
    if learned.away:
        click.echo(f"The backend does not answer ({learned.away}): what was learned until then is told.", err=True)
    if learned.is_late:
        click.echo(
            f"The budget of {budget:g} s is used up: give more with --budget, or less to do with --only.", err=True
        )
    sys.exit(report.exit)


def _host(url: str) -> str:
    parts = urlsplit(url)
    try:
        is_address = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_address = False
    if not is_address or parts.query or parts.username:
        raise Unusable(f"{url}: give the address above /v2, such as https://api.example.com.")
    return str(parts.hostname)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or not text.isprintable():
        raise Unusable(f"{text!r}: give a header as 'Name: value'.")
    return name.strip(), value.strip()


def _ask(host: str) -> None:
    """Have somebody at a terminal type the host's name. Raises Unusable."""
    if not sys.stdin.isatty():
        raise Unusable(f"--write makes records at {host}. Give --yes {host} if that is meant.")
    if click.prompt(f"This makes records at {host}. Type its name to go on") != host:
        raise Unusable("The name is another one. Nothing was sent.")
