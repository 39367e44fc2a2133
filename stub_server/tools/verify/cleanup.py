"""The records that the target has made during a run, and their removal."""

import asyncio
from contextlib import suppress
from time import monotonic

from ...contract.document import Operation
from .catalogue import Catalogue, Resource, entries_of, record_of
from .exchange import Answer
from .target import Away, Target, together

Made = dict[str, Resource]
"""The records that a journey has made and not deleted, by id."""


class Cleanup:
    """One per run."""

    def __init__(self, catalogue: Catalogue, target: Target, tag: str) -> None:
        """The names of the run's records contain `tag`."""
        self.tag = tag
        self._catalogue = catalogue
        self._target = target
        self._made: list[Made] = []
        self.noted: set[str] = set()
        """Ids of all records that were ever made."""
        self.spoiled: set[str] = set()
        """Those that the target should have refused to make or to change."""
        self.archived = 0
        """How many records could only be archived."""
        self.is_cut_short = False
        """Whether there may be more records than those that are known."""

    def made(self) -> Made:
        """For the records of another journey."""
        self._made.append({})
        return self._made[-1]

    def note(self, made: Made, operation: Operation, answer: Answer) -> None:
        """Note the record that an operation has made, before anything else is waited for."""
        resource = self._catalogue.made_by(operation)
        ident = record_of(answer.json()).get("id")
        # what is made below a record is deleted with it
        is_below = "{" in operation.path
        if resource is not None and not is_below and answer.is_success and isinstance(ident, str):
            made[ident] = resource
            self.noted.add(ident)

    @property
    def left_behind(self) -> list[str]:
        """The paths of the records that are still there."""
        return [kind.at(ident) for made in self._made for ident, kind in made.items()]

    async def finish(self) -> None:
        """Remove what all journeys have left, and what lists have besides."""
        self.is_cut_short = True
        with suppress(TimeoutError, Away):
            async with asyncio.timeout(self._target.until - monotonic()):
                # A record may have made another, as an order its customer, or was made without an
                # answer.
                await together(*map(self._search, self._catalogue.resources.values()))
                await together(*map(self.remove, self._made))
                self.is_cut_short = False

    async def remove(self, made: Made) -> None:
        """Delete records, else archive them, the newest first: they refer to others.

        What cannot be removed stays.
        """
        for ident, resource in reversed([*made.items()]):
            if await self._removed(resource, ident):
                made.pop(ident, None)

    async def _removed(self, resource: Resource, ident: str) -> bool:
        path = resource.at(ident)
        answer = await self._target.ask("DELETE", path) if resource.delete else Answer(0)
        if answer.is_success or answer.status == 404:
            return True
        archive = f"{path}/archive"
        if not self._catalogue.document.routed(archive)[0]:
            return False
        is_archived = (await self._target.ask("POST", archive, b"{}")).is_success
        self.archived += is_archived
        return is_archived

    async def _search(self, resource: Resource) -> None:
        """Note the newest records of a list that contain the run's tag and are not known yet."""
        made = self.made()
        listing = resource.list
        if listing is None or "{" in resource.create.path:
            return
        answer = await self._target.ask("GET", listing.path, query="limit=100")
        for entry in entries_of(answer.json()):
            ident = str(entry["id"])
            if self.tag in str(entry) and ident not in self.noted:
                made[ident] = resource
                self.noted.add(ident)
