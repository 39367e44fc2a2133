"""What an event sets off: a delivery for every webhook that wants it."""

from typing import TYPE_CHECKING

from .log import Event

if TYPE_CHECKING:
    from ..sandbox import Sandbox
    from ..store.memory import Store


def on_event(sandbox: "Sandbox", store: "Store", event: Event) -> None:
    """Called once per event, within the step that raised it."""
