"""What the journeys of a run share, and what it has learned."""

import secrets
from collections import defaultdict
from collections.abc import Callable

from ...core.record import Body
from .catalogue import Catalogue
from .cleanup import Cleanup
from .exchange import Exchange, base_of
from .merging import Report
from .options import Options
from .target import Target


class Run(Report):
    """One per run."""

    def __init__(self, options: Options, on_exchange: Callable[[Exchange], None]) -> None:
        """Raises ContractError."""
        mode = "write" if options.write else "read"
        super().__init__(options.overlays, base_of(options.url), mode)
        document = self.document
        self.options, self.catalogue = options, Catalogue(document)
        self.target = Target(options, on_exchange)
        values = [value for name, value in options.headers if name.lower() != "accept"]
        self.showing.credentials = [options.token, options.other, *values]
        self.tag = secrets.token_hex(3)
        """Differs from run to run."""
        self.cleanup = Cleanup(self.catalogue, self.target, f"verify-{self.tag}")
        self.learned: dict[str, Body] = defaultdict(dict)
        """Members that creations demand, and values that they accept in place of an example's, by
        operationId.
        """
        self.closed: dict[str, str] = {}
        """Why operations are out of the credential's reach, by operationId."""
        chosen = filter(options.includes, document.operations.values())
        self.chosen = [operation.id for operation in chosen]
        """The operationIds that the run is about."""
        self.unanswered = 0
        """Requests that may have changed something without an answer."""
        self.away = ""
        """A clause that says why the target could not be asked any more."""
        self.is_late, self.is_interrupted = False, False
