"""Seeded worlds that servers of one process share: a second server of the same address and scenario
gets a copy.

A server keeps the sandboxes that it has filled and copies them for those that follow; here servers
do so among themselves. Half of what it costs to make one is its default sandbox, and a process of
tests makes a hundred alike.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from stub_server import app
from stub_server.data.filling import Key, Seeding
from stub_server.engine.sandbox import Sandbox

from .contract import document

MOST = 64
_copies: dict[Key, Sandbox] = {}


class _Remembering(Seeding):
    def fill(self, sandbox: Sandbox) -> None:
        """Fill it; where the clock runs, or contract or check digits are others, each server does
        it by itself.
        """
        is_usual = sandbox.clock.frozen and sandbox.settings.check_digits
        if not is_usual or sandbox.rules.document.raw != document().raw:
            super().fill(sandbox)
            return
        self.copies |= _copies
        super().fill(sandbox)
        _copies.update(self.copies)
        for key in list(_copies)[:-MOST]:  # servers fill worlds in threads of theirs
            _copies.pop(key, None)


@contextmanager
def remembering() -> Iterator[None]:
    """Have servers that are made in the block share what they seed."""
    with patch.dict(vars(app), Seeding=_Remembering):
        yield
