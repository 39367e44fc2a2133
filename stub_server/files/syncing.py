"""Brings what was written to the disk a tenth of a second later, beside the requests, and keeps SQLite's log short."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

EVERY = 0.1  # seconds: so much may be lost when the machine dies
LONG, VERY_LONG = 8 * 1024 * 1024, 64 * 1024 * 1024  # bytes of SQLite's log
_PATIENCE = 5.0
log = logging.getLogger("stub_server")


class Syncing:
    """A thread of its own, for it waits for the disk. `is_behind` is set by whoever has written."""

    def __init__(self, file: Path) -> None:
        self.is_behind = False
        self._has_failed = False
        self._file, self._wal = file, file.with_name(file.name + "-wal")
        self._done = threading.Event()
        self._next: deque[Callable[[], object]] = deque()
        self._thread = threading.Thread(target=self._run, name="syncing", daemon=True)
        self._thread.start()

    def after_next(self, action: Callable[[], object]) -> None:
        """Do something once all that is written by now is on the disk."""
        self._next.append(action)
        self.is_behind = True

    def close(self) -> None:
        """Sync what there is, and stop."""
        self._done.set()
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        database = sqlite3.connect(self._file, _PATIENCE, isolation_level=None)
        try:
            while not self._done.wait(EVERY):
                self._look(database)
            self._look(database)
        finally:
            database.close()

    def _look(self, database: sqlite3.Connection) -> None:
        if not self.is_behind:
            return
        self.is_behind = False
        ready = len(self._next)
        try:
            with open(self._wal, "r+b") as file:
                os.fsync(file.fileno())
            size = self._wal.stat().st_size
            if size > LONG:  # does not hold up who writes, and mostly brings the whole log over
                database.execute("pragma wal_checkpoint(passive)").fetchall()
            if size > VERY_LONG:
                database.execute("pragma wal_checkpoint(truncate)").fetchall()
            for _ in range(ready):
                self._next.popleft()()
            self._has_failed = False
        except (OSError, sqlite3.Error) as error:
            if not self._has_failed:
                log.error("the store could not be brought to the disk (%s); it is tried again until it can", error)
            self.is_behind = self._has_failed = True
