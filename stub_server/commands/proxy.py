"""The verb `proxy`: its flags, and its exit codes 0 fine, 1 divergences with `--fail`, 2 could not run."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import BaseUrl, Number, Unusable, of_overlays, printable

if TYPE_CHECKING:
    from ..verify.watching import Watching

_HOST = "127.0.0.1"
_HANDOVER = 0.0002  # seconds that judging keeps a request waiting, each time that both want to run


@click.command(context_settings={"show_default": True})
@click.argument("url", type=BaseUrl())
@click.option("--port", type=Number(0, 65535), default=4601, help="Port to listen on; 0 picks a free one.")
@of_overlays
@click.option("--report", "reports", multiple=True, metavar="FORM[=FILE]", help="text, json, html, junit or sarif.",
              default=("text",))  # fmt: skip
@click.option("--write-overlay", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Write an overlay that corrects the contract, each action proved by what was seen.")  # fmt: skip
@click.option("--fail", is_flag=True, help="Exit with 1 if the backend diverges from the contract.")
def proxy(
    url: str, port: int, overlays: tuple[Path, ...], reports: tuple[str, ...], write_overlay: Path | None, fail: bool
) -> None:
    """Pass requests on to the backend at URL, and compare its answers with the contract.

    Point a client or a test at the port. Each exchange is passed on unchanged and judged afterwards, with a line on the
    terminal. Ctrl-C ends the proxy and prints the report. /_proxy/exchanges has what was seen, also as ?format=har.
    """
    import asyncio

    from ..verify.forms import overlay as overlay_form
    from ..verify.outcome import contract_with
    from ..verify.reporting import forms_of, save, written
    from ..verify.watching import Watching

    forms = forms_of(reports)
    document, where = contract_with(overlays)
    target = url.rstrip("/").removesuffix("/v2")
    watching = Watching(document, target, lambda line: click.echo(printable(line)))
    sys.setswitchinterval(_HANDOVER)
    asyncio.run(_served(target, port, watching))
    report = watching.report()
    if write_overlay is not None:
        asyncio.run(watching.correct(report, overlays))
        save(write_overlay, overlay_form.render(report, where))
    for text in written(report, where, forms):
        click.echo(text)
    for reason, count in sorted(watching.unjudged.items()):
        click.echo(f"Not judged: {count:,} ({printable(reason)}).", err=True)
    sys.exit(1 if fail and report.exit else 0)


async def _served(target: str, port: int, watching: Watching) -> None:
    """Serve until a signal comes. Raises Unusable where the port is taken."""
    import asyncio
    import signal

    from ..verify.proxy import OWN, Proxy

    async def own(path: str, query: str) -> tuple[int, bytes]:
        return await asyncio.to_thread(watching.own, path, query)

    ended = asyncio.Event()
    running = Proxy(target, watching.passed, own)
    try:
        listening = await running.start(_HOST, port)
    except OSError as error:
        why = error.strerror or str(error)
        raise Unusable(f"cannot listen on {_HOST}:{port}: {why}. --port 0 picks a free one.") from None
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows interrupts in another way
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
    address = f"http://{_HOST}:{listening}"
    click.echo(
        f"{address} passes requests on to {printable(target)}. {address}{OWN}exchanges shows them. Ctrl-C reports."
    )
    try:
        await ended.wait()
    finally:
        await running.stop()
