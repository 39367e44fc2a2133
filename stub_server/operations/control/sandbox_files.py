"""A sandbox as a file: taken from here, and put in the place of another."""

from collections.abc import AsyncGenerator, Callable
from tempfile import SpooledTemporaryFile
from typing import IO

from ...core.problem import Conflict, Invalid, Limited, detail
from ...core.record import Body
from ...engine.sandbox import Sandbox
from ...engine.step import Step
from ...server.journal.recordable import chosen, line
from ...server.reply import Reply, Streamed
from ...server.views import shown
from ...server.work import Work
from ...storage.exports import write_recording, write_sandbox
from ...storage.package import MEDIA, BadFile
from ...storage.state import capture
from .turns import own_turn

Writing = Callable[[IO[bytes]], object]
MOST_DOWNLOADS, OF_SANDBOX = 16, 4  # files that a server sends at once, and of one sandbox
_MOST_SHOWN = 1_000  # characters of a reason
# bytes that are read at once; and of a file, which beyond that is on disk
_PIECE, _IN_MEMORY = 64 * 1024, 1024 * 1024


async def export_sandbox(work: Work, query: Body) -> Reply:
    """Others are served while the file is packed, and it is sent as fast as it is read."""
    async with own_turn(work) as entry:
        state, steps = capture(entry.sandbox), list(entry.sandbox.log)
        if query["requests"]:
            return await _file(work, "stub", _recording(work, entry.sandbox, state, steps))
        snapshots, secrets = list(entry.snapshots.values()), query["secrets"]
        if not query["history"]:
            steps = []
        return await _file(
            work,
            "sandbox",
            lambda file: write_sandbox(file, state, steps, snapshots, secrets=secrets),
        )


def _recording(work: Work, sandbox: Sandbox, state: Sandbox, steps: list[Step]) -> Writing:
    """Writes the state before the oldest request that can be sent again, and the requests since."""
    traces, left_out = chosen(sandbox)
    start = traces[0].before if traces else sandbox.log.number
    about = {
        "behaviour": dict(work.server.settings.behaviour),
        "held": sandbox.status.held_before,
        "generation": sandbox.origin.generation,
        "left_out": left_out,
        "recorded": len(traces),
    }
    return lambda file: write_recording(
        file, state, steps, about=about, start=start, requests=map(line, traces)
    )


async def _file(work: Work, ending: str, write: Writing) -> Reply:
    """What is written, under the sandbox's name. Raises Limited, Conflict."""
    server, name = work.server, work.sandbox.name
    downloads = server.underway.downloads
    if len(downloads) >= MOST_DOWNLOADS or [*downloads.values()].count(name) >= OF_SANDBOX:
        message = (
            f"{MOST_DOWNLOADS} files are being sent, or {OF_SANDBOX} of this sandbox, which is the"
            " maximum. Send this again in 5 seconds."
        )
        raise Limited(message, headers={"Retry-After": "5"})
    file = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed with the response
    downloads[file] = name
    try:
        await server.sandboxes.worker.beside(lambda: write(file))
    except BadFile as error:
        file.close()
        raise Conflict(
            str(error), code="sandbox_too_large", details=[_detail(error, str(error))]
        ) from None
    size = file.tell()
    file.seek(0)
    named = (
        b"content-disposition",
        f'attachment; filename="{name}.{ending}"'.encode(),
    )
    return Streamed(_pieces(file), MEDIA.encode(), (named, (b"content-length", b"%d" % size)))


async def _pieces(file: IO[bytes]) -> AsyncGenerator[bytes]:
    with file:
        while piece := file.read(_PIECE):
            yield piece


async def import_sandbox(work: Work, query: Body) -> Body:
    """A file that cannot be used changes nothing."""
    try:
        entry, replaced = await work.sandboxes.import_(
            work.sandbox.name, work.upload, deliver=query["deliver"], abroad=work.request.is_foreign
        )
    except BadFile as error:
        raise Invalid(
            str(error)[:_MOST_SHOWN],
            code="unusable_file",
            details=[_detail(error, reason) for reason in error.reasons],
        ) from None
    work.move_to(entry.sandbox)
    return {"sandbox": shown(work, entry), "replaced": replaced}


def _detail(error: BadFile, reason: str) -> dict[str, str]:
    return detail("file", error.kind, reason[:_MOST_SHOWN])
