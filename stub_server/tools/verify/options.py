"""The options of a run."""

from dataclasses import dataclass
from pathlib import Path

from ...contract.document import Operation
from ...settings import Overlays
from .exchange import Headers
from .findings import CLASSES


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run, as the command has them.

    `url` is the parent of `/v2`. `only` and `skip` are operationIds, tags or classes; `headers` are
    sent with every request; `trusted` is a file of certificates. `other` is the credential of
    another merchant.
    """

    url: str
    token: str
    write: bool = False
    charges: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    budget: float = 120.0
    settle: float = 2.0
    seed: int = 42
    overlays: Overlays = ()
    headers: Headers = ()
    trusted: Path | None = None
    proxy: str | None = None
    other: str = ""

    def sends(self, operation: Operation) -> bool:
        """Whether the run sends requests to an operation: without `write`, it only reads."""
        return self.write or operation.method == "GET"

    def includes(self, operation: Operation) -> bool:
        """Whether the run is about an operation."""
        names = {operation.id, operation.tag}
        wanted = set(self.only) - CLASSES.keys()
        return not names & set(self.skip) and (not wanted or bool(names & wanted))
