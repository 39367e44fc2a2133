"""The verbs `verify` and `proxy`, which compare a backend with the contract.

Exit codes: 0 conforms, 1 diverges, 2 could not run, 3 reached too little; of `proxy`, 1 and 3 only
with `--fail`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from ..core.text import is_local, printable
from .options import Unusable, write_private

if TYPE_CHECKING:
    from ..tools.verify.merging import Report
    from ..tools.verify.observed import Watching
    from ..tools.verify.options import Options

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+").fullmatch


def verify(
    *,
    url: str | None,
    coverage: float,
    reports: tuple[str, ...],
    write_overlay: Path | None,
    baseline: Path | None,
    har: Path | None,
    record_har: Path | None,
    yes: str | None,
    **chosen: Any,
) -> None:
    """Compare the backend at URL, the address above /v2, with the contract and with this
    sandbox.
    """
    from ..tools.verify.outcome import check_forms, known, of_recorded

    check_forms(reports)
    hidden = known(baseline) if baseline is not None else set()
    corrects = write_overlay is not None
    if har is not None:
        overlays = chosen["overlays"]
        report = of_recorded(har, url, overlays, hidden, corrects=corrects)
    else:
        options = _options(url, chosen)
        host = str(urlsplit(options.url).hostname)
        if options.write and not is_local(host) and yes != host:
            _ask(host)
        report = _sent(options, coverage, hidden, record_har, corrects=corrects)
    _print(report, reports, write_overlay)
    sys.exit(report.exit)


def _options(url: str | None, chosen: dict[str, Any]) -> Options:
    """The options of a run. Raises UsageError."""
    from ..tools.verify.options import Options

    if url is None:
        raise click.UsageError(
            "Give the address of the backend as URL, or recorded traffic with --har."
        )
    if urlsplit(url).username is not None:
        raise click.UsageError(
            "Leave user and password out of the URL: --token and --header take credentials."
        )
    if chosen["token"] is None:
        raise click.UsageError(
            "Give the credential of the backend with --token or STUB_VERIFY_TOKEN."
        )
    other = os.environ.get("STUB_VERIFY_OTHER", "")
    sent = (f"Authorization: {chosen['token']}", f"Authorization: {other}", *chosen.pop("headers"))
    return Options(url=url, other=other, headers=tuple(map(_header, sent))[2:], **chosen)


def _sent(
    options: Options, coverage: float, hidden: Set[str], file: Path | None, *, corrects: bool
) -> Report:
    """Make a run, with a progress bar. Raises Unusable."""
    import asyncio
    import ssl

    from ..tools.verify.correcting import correct_run
    from ..tools.verify.exchange import Exchange, base_of
    from ..tools.verify.har import archive_of, entry_of
    from ..tools.verify.outcome import check_names, of_run
    from ..tools.verify.run import Runner

    recorded = []

    def record(exchange: Exchange) -> None:
        if file is not None:
            recorded.append(entry_of(run.showing.redacted(exchange), base_of(options.url)))

    label = f"Comparing {urlsplit(options.url).hostname}"
    with click.progressbar(length=1, file=sys.stderr, label=label) as bar:

        def progress(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        try:
            run = Runner(options, progress, record)
            check_names(options, run.document)
            asyncio.run(run.run())
            report = of_run(run, hidden, coverage)
            if corrects and not run.away and not run.is_interrupted:
                asyncio.run(correct_run(run, progress))
        except KeyboardInterrupt:
            raise Unusable("Interrupted before the comparison ended.") from None
        except ssl.SSLError:
            raise Unusable(f"{options.trusted}: contains no PEM certificates.") from None
    if file is not None:
        write_private(file, archive_of(recorded))
    return report


def _header(text: str) -> tuple[str, str]:
    name, colon, value = map(str.strip, text.partition(":"))
    if not colon or not _NAME(name) or not value.isascii() or not value.isprintable():
        raise click.UsageError(
            f"The header {name[:40]!r} cannot be sent. Give --header 'Name: value' in ASCII."
        )
    return name, value


def _ask(host: str) -> None:
    """Ask the user to type the host's name. Raises Unusable."""
    if not sys.stdin.isatty():
        raise Unusable(f"--write creates records at {host}. Confirm with --yes {host}.")
    if click.prompt(f"This creates records at {host}. Type its name to continue", err=True) != host:
        raise Unusable("The names differ. Nothing was sent.")


def proxy(
    *,
    url: str,
    port: int,
    overlays: tuple[Path, ...],
    reports: tuple[str, ...],
    write_overlay: Path | None,
    fail: bool,
) -> None:
    """Pass requests on to the backend at URL, and compare its answers with the contract."""
    import asyncio

    from ..tools.verify.exchange import base_of
    from ..tools.verify.observed import Watching
    from ..tools.verify.outcome import check_forms

    check_forms(reports)
    target = base_of(url)
    watching = Watching(target, lambda line: click.echo(printable(line)), overlays)
    _serve(target, port, watching)
    watching.finish()
    if write_overlay is not None:
        asyncio.run(watching.correct())
    _print(watching, reports, write_overlay)
    sys.exit(watching.exit if fail else 0)


def _print(report: Report, forms: tuple[str, ...], corrections: Path | None) -> None:
    """Write a report in each form, or print it, and its corrections; print its notes."""
    from ..tools.verify.forms import FORMS, rendered

    if corrections is not None:
        write_private(corrections, rendered("overlay.yaml", report=report).encode())
    for each in forms:
        form, _, file = each.partition("=")
        text = rendered(FORMS[form], report=report)
        if file:
            write_private(Path(file), f"{text}\n".encode())
        else:
            click.echo(text)
    for note in report.notes:
        click.echo(printable(note), err=True)


def _serve(target: str, port: int, watching: Watching) -> None:
    """Serve until a signal comes. Raises UnusableInput if the port is in use."""
    import signal

    import uvicorn

    from ..settings import LOOPBACK, Settings
    from ..tools.verify.proxy import OWN, Proxy
    from .listening import listen

    server = uvicorn.Server(Proxy(target, watching.passed, watching.archive).config())
    # uvicorn raises again what has ended it
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with listen(Settings(port=port)) as listeners, suppress(KeyboardInterrupt):
        address = f"http://{LOOPBACK}:{listeners[0].getsockname()[1]}"
        click.echo(
            f"{address} passes requests on to {printable(target)}. {address}{OWN} lists"
            " them. Ctrl-C reports."
        )
        server.run(listeners)
