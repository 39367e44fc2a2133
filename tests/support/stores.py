"""Where the sandboxes of journeys are: in memory, or in a store that a module's servers are given.

A third of the modules run on PostgreSQL, chosen by the digest of the commit, so that each does
every few commits.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from stub_server.settings import Settings

from .commit import commit
from .postgres import Postgres

MEMORY, SQLITE, POSTGRESQL = STORES = ("memory", "sqlite", "postgresql")
JOURNEYS = Path(__file__).parents[1] / "journeys"


class Choice:
    """The pytest plugin that decides which modules of journeys run on which store, and says so."""

    def __init__(self, config: pytest.Config) -> None:
        names = sorted(path.stem for path in JOURNEYS.glob("test_*.py"))
        asked = config.getoption("--store")
        self._commit = commit()
        self._is_asked = asked is not None or config.getoption("--short")
        if self._is_asked:
            self._stores = dict.fromkeys(names, asked or MEMORY)
        else:
            in_order = sorted(
                names, key=lambda name: sha256(f"{self._commit} {name}".encode()).digest()
            )
            self._stores = dict.fromkeys(in_order[: -(-len(names) // 3)], POSTGRESQL)

    def of(self, path: Path) -> str:
        """The store of a module."""
        return self._stores.get(path.stem, MEMORY) if path.parent == JOURNEYS else MEMORY

    def pytest_report_header(self) -> str:
        """Say it, and how to have it again."""
        if self._is_asked:
            return f"journeys: sandboxes in {next(iter(self._stores.values()))}"
        names = " ".join(sorted(name.removeprefix("test_") for name in self._stores))
        return (
            f"journeys: a third on PostgreSQL, chosen by {self._commit[:12]}: {names}\n"
            "  (one of them again: ARGS=tests/journeys/test_NAME.py STORE=postgresql)"
        )


_store = MEMORY
_place: Callable[[], AbstractContextManager[Path | str]] | None = None


def current() -> str:
    """Which store servers are given now."""
    return _store


@contextmanager
def on(store: str, postgres: Callable[[], Postgres]) -> Iterator[None]:
    """Give each server that is started in the block such a store of its own; `postgres`
    has the databases.
    """
    global _store, _place
    before = _store, _place
    places = {MEMORY: None, SQLITE: _directory, POSTGRESQL: lambda: postgres().database()}
    _store = store
    _place = places[store]
    try:
        yield
    finally:
        _store, _place = before


@contextmanager
def stored(settings: Settings) -> Iterator[Settings]:
    """Settings with a new store, if servers are given one now and they name none."""
    if _place is None or settings.store is not None:
        yield settings
        return
    with _place() as place:
        yield replace(settings, store=place)


@contextmanager
def _directory() -> Iterator[Path]:
    with TemporaryDirectory(prefix="store-") as directory:
        Path(directory).chmod(0o700)
        yield Path(directory)
