"""Work on a sandbox as a whole: one at a time of each, so that much of one delays no other for
long.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...server.layers.access import check_access
from ...server.sandboxes.entry import Entry
from ...server.work import Work


@asynccontextmanager
async def own_turn(work: Work) -> AsyncIterator[Entry]:
    """Wait until earlier work on the sandbox is done; gives what there is then.

    Raises Limited, Forbidden, NotFound.
    """
    with work.waiting():
        async with work.sandboxes.worker.own(work.sandbox.name):
            await asyncio.sleep(0)  # or all that came together would be done in one turn
            check_access(work)  # its key may have ended meanwhile
            yield work.entry
