"""A sandbox as a file: taken from here, and put in the place of another."""

from functools import partial

from ...calls import reply
from ...calls.call import Call
from ...calls.reply import Reply
from ...calls.worlds import shown
from ...engine.past import state_at
from ...files.carrying import file_of
from ...files.package import MEDIA, BadFile
from ...files.recording import recording_of
from ...files.state import capture
from ...journal.recorded import chosen, line, wall_of
from ...kernel.problem import Conflict, Invalid, detail
from ...kernel.record import Body

_MOST_SHOWN = 1_000  # characters of a reason


async def export_sandbox(call: Call, query: Body) -> Reply:
    """200 with the file. Others are served while it is packed."""
    if query["requests"]:
        return await _record(call, secrets=query["secrets"])
    sandbox = call.sandbox
    sandboxes, secrets = call.server.sandboxes, query["secrets"]
    state, steps = capture(sandbox), list(sandbox.log) if query["history"] else []
    snapshots = [snapshot.told for snapshot in sandboxes.entry(sandbox.name).snapshots.oldest()]
    try:
        file = await sandboxes.lane.beside(lambda: file_of(state, steps, snapshots, secrets=secrets))
    except BadFile as error:
        raise Conflict(str(error), code="sandbox_too_large", details=[_detail(error, str(error))]) from None
    named = (b"content-disposition", f'attachment; filename="{sandbox.name}.world"'.encode())
    return Reply(200, (file,), headers=(named,), media=MEDIA.encode())


async def _record(call: Call, *, secrets: bool) -> Reply:
    """200 with the state before the oldest request that can be sent again, and the requests since."""
    sandbox, lane = call.sandbox, call.server.sandboxes.lane
    found = chosen(sandbox)
    about = {
        "behaviour": dict(call.server.behaviour),
        "held": sandbox.held,
        "left_out": found.left_out,
        "recorded": len(found.traces),
    }
    requests = [partial(line, trace, wall_of(trace)) for trace in found.traces]
    state = capture(await lane.in_slices(state_at(sandbox, found.start, sandbox.name)))
    try:
        file = await lane.beside(
            lambda: recording_of(
                state, found.earlier, about, (made() for made in requests), found.outside, secrets=secrets
            )
        )
    except BadFile as error:
        raise Conflict(str(error), code="sandbox_too_large", details=[_detail(error, str(error))]) from None
    named = (b"content-disposition", f'attachment; filename="{sandbox.name}.stub"'.encode())
    return Reply(200, (file,), headers=(named,), media=MEDIA.encode())


async def import_sandbox(call: Call, query: Body) -> Reply:
    """200 with the sandbox, which is now the one of the file; 422 for a file that cannot be used changes nothing."""
    sandboxes = call.server.sandboxes
    try:
        entry = await sandboxes.import_(call.sandbox.name, call.upload, deliver=query["deliver"])
    except BadFile as error:
        details = [_detail(error, reason) for reason in error.reasons]
        raise Invalid(str(error)[:_MOST_SHOWN], code="unusable_file", details=details) from None
    call.sandbox = entry.world
    return reply.value({"sandbox": shown(call, entry)})


def _detail(error: BadFile, reason: str) -> dict[str, str]:
    return detail("file", error.kind, reason[:_MOST_SHOWN])
