"""A file on its way to whoever asked for it: written once, then read in pieces, and beyond a mebibyte not in memory."""

from __future__ import annotations

from tempfile import SpooledTemporaryFile
from weakref import WeakSet

IN_MEMORY = 1024 * 1024  # bytes; what is larger is on the disk, under no name
PIECE = 64 * 1024  # bytes


class Download:
    """One file. `file` takes it; then this is an asynchronous iterator of its pieces, to be closed by whoever reads."""

    def __init__(self, among: WeakSet[Download]) -> None:
        """It is `among` the downloads of its server until it is closed."""
        self._among = among
        among.add(self)
        self.file = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed with the response
        self.size = 0

    def written(self) -> None:
        """The file is whole: from here on it is read."""
        self.size = self.file.tell()
        self.file.seek(0)

    def __aiter__(self) -> Download:
        return self

    async def __anext__(self) -> bytes:
        piece = self.file.read(PIECE)
        if not piece:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Give memory and disk back."""
        self._among.discard(self)
        self.file.close()
