"""The file of `--ready-file`, which exists while the server answers."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import orjson

from .calls.server import Server


class ReadyFile:
    """A JSON file with what a test needs first: `url`, `token`, `sample`, and the `pid` to stop the server by.

    It appears at once and whole: it is written beside its place, and moved there.
    """

    def __init__(self, path: Path) -> None:
        """Remove the file of a server that was killed. Raises OSError."""
        self._path, self._draft, self._text = path.absolute(), path, b""
        self._path.unlink(missing_ok=True)

    def write(self, server: Server) -> None:
        """Write the draft, for its owner alone, since a token opens the sandbox. Raises OSError."""
        sandbox = server.sandboxes.default
        found = {"url": server.url, "token": server.ready_token(sandbox), "sample": sandbox.sample, "pid": os.getpid()}
        self._text = orjson.dumps(found) + b"\n"
        with tempfile.NamedTemporaryFile(dir=self._path.parent, prefix=self._path.name, delete=False) as draft:
            self._draft = Path(draft.name)
            draft.write(self._text)

    def show(self) -> None:
        """Move the draft to its place."""
        self._draft.replace(self._path)

    def remove(self) -> None:
        """Remove the file, unless another server has replaced it."""
        with suppress(OSError):
            if self._path.read_bytes() == self._text:
                self._path.unlink()
