"""Makes a sandbox and its snapshots of what an earlier process has left in the directory."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial

import orjson

from ..engine.sandbox import SILENT, Sandbox
from ..files.admitting import DROPPING, LeftOut, admit
from ..files.directory import Directory
from ..files.fitting import Fitting, Shapes
from ..files.lots import lot_lines
from ..files.package import BadFile
from ..files.parts import Unreadable
from ..files.reading import Reader
from ..files.secrets import adopted
from ..files.state import capture
from ..files.states import StoreError
from ..files.survey import Kept, KeptSnapshot
from ..kernel.record import Body
from .entry import Origin
from .making import Maker
from .snapshots import Snapshot, snapshot_of

log = logging.getLogger("stub_server")


def reopened(
    directory: Directory, number: int, kept: Kept, maker: Maker, origin: Origin, contract: str
) -> tuple[Sandbox, Kept, int, int, list[Snapshot]]:
    """A sandbox, what is kept of it, the bytes of its state and of the steps since, and its snapshots.

    What is of another contract than `contract` is held to the one that is served, and converted. Raises StoreError.
    """
    where = f"--store {directory.path}: the sandbox {kept.name}"
    shapes, rewrite = Shapes(origin.seeding.fixtures), adopted(origin.secret, kept.name, anew=False)

    def reader(of: Kept | KeptSnapshot, keep: int = 0) -> Reader:
        same = of.contract == contract
        return Reader(rewrite, keep, None if same else Fitting(origin.rules, shapes, of.contract))

    def snapshot(of: KeptSnapshot) -> tuple[Body, Reader]:
        found = reader(of)
        _read(found, directory.read_base(of.base))
        return of._asdict(), found

    own = reader(kept, origin.history)
    try:
        size = _read(own, directory.read_base(kept.base))
        since = _read(own, directory.steps(number, kept.step))
        found = admit(
            own,
            map(snapshot, directory.snapshots(number)),
            partial(maker.carried, kept.name),
            origin.secret,
            lambda clock: clock,
            drop_unfit=origin.drop_unfit,
            trusted=True,
        )
    except (Unreadable, ValueError) as error:
        if not isinstance(error, BadFile) or error.kind != "unfit":
            raise StoreError(f"{where} cannot be read: {error}.") from None
        advice = () if origin.drop_unfit else (DROPPING,)
        lines = (f"{where} does not fit the contract that is served:", *error.reasons, *advice)
        raise StoreError("\n  ".join(lines)) from None
    world = found.sandbox
    world.log.refill(found.steps)
    world.held = _held(kept, own)
    if found.left_out is not None:
        tell_left_out(where, found.left_out)
        kept = kept._replace(base=directory.next_base(), step=world.log.number, contract=contract)
        size, since = directory.write_base(kept.base, lot_lines(capture(world))), 0
        directory.rebase(number, kept)
        for name in found.left_out.snapshots:
            directory.drop_snapshot(number, name)
    elif kept.contract != contract:
        directory.mix(number)
    return world, kept, size, since, [snapshot_of(told) for told in found.snapshots]


def tell_left_out(where: str, left_out: LeftOut) -> None:
    """Log what was left out at the start, and why."""
    log.warning("%s: left out are %s", where, left_out)
    for reason in left_out.reasons:
        log.warning("  %s", reason)


def _read(reader: Reader, lines: Iterable[bytes]) -> int:
    size = 0
    for line in lines:
        size += len(line)
        ((kind, body),) = orjson.loads(line).items()
        reader.read(kind, body)
    return size


def _held(kept: Kept, reader: Reader) -> int:
    """Which deliveries are held back: what was noted, or what a later step has said that went back in time."""
    if kept.held is None:
        return SILENT
    later = [step.restored.raised_after for step in reader.restorations if step.restored and step.number > kept.noted]
    return later[-1] if later else kept.held
