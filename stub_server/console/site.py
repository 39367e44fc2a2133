"""What all pages read beside what they ask: the contracts, the guide, settings; and the blueprints
that pages join.
"""

from dataclasses import dataclass

from flask import Blueprint, current_app

from ..contract.document import Document, Operation
from ..contract.source import JsonObject
from ..server.request import CONTROL
from ..settings import Settings
from ..version import __version__
from .guide.guide import Guide
from .leaves import Leaves
from .sessions import Sessions

EXTENSION = "stub_server"

Groups = dict[str, list[Operation]]

pages = Blueprint("console", __name__, url_prefix="/console")
"""Pages that act, and show what strangers may not see."""
beside = Blueprint("beside", __name__)
"""Pages that everybody may open: the overview, the API, the guide.

Strangers see nothing of the sandbox in them.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Contracts:
    """What pages read. `groups` are the operations of the API by tag, `controls` those of the
    controls.
    """

    api: Document
    control: Document
    settings: Settings
    scenarios: list[str]
    personas: dict[str, str]
    payer_texts: dict[str, JsonObject]
    sessions: Sessions
    leaves: Leaves
    guide: Guide
    groups: Groups
    controls: Groups

    @property
    def version(self) -> str:
        """Of the sandbox."""
        return __version__

    @property
    def url(self) -> str:
        """The server's address."""
        return self.settings.url

    def operation(self, ident: str | None) -> Operation | None:
        """An operation of either contract."""
        return self.api.operations.get(ident or "") or self.control.operations.get(ident or "")

    def home(self, ident: str) -> tuple[str, Document]:
        """What stands before the paths of the contract that has an operation, and that contract."""
        return ("", self.api) if ident in self.api.operations else (CONTROL, self.control)


def contracts() -> Contracts:
    """Those of this application."""
    found: Contracts = current_app.extensions[EXTENSION]
    return found


def grouped(document: Document) -> Groups:
    """The operations by tag, in the order of the document's tags; those that an overlay has not
    declared come last.
    """
    found: Groups = {tag["name"]: [] for tag in document.raw.get("tags", ())}
    for operation in document.operations.values():
        found.setdefault(operation.tag, []).append(operation)
    return {name: operations for name, operations in found.items() if operations}
