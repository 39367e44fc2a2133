"""The states of a resource and the moves between them, as `x-lifecycle` describes them."""

from collections.abc import Mapping
from dataclasses import dataclass

from .source import Json, Place

Names = tuple[str, ...]
"""Of states, events, operations or codes, in the order of the contract."""
Changes = dict[tuple[str | None, str], Names]
"""The events of changes other than moves, by schema name and change."""


@dataclass(frozen=True, slots=True)
class Move:
    """One legal move of a lifecycle and the events it raises. Of several between the same two
    states each has a name.

    `control` is the control by which a user makes the move, as the answers of controls name it.
    """

    from_: str
    to: str
    events: Names
    by: Names
    name: str | None = None
    control: str | None = None


@dataclass(frozen=True)
class Lifecycle:
    """The states of a resource, named sets of them, and the moves between them (`x-lifecycle`)."""

    resource: str
    field: str
    states: Names
    moves: tuple[Move, ...]
    sets: Mapping[str, Names]

    @property
    def at(self) -> Place:
        """Its place in the document."""
        return ["components", "schemas", self.resource, "x-lifecycle"]

    def find(self, from_: str, to: str, name: str | None = None) -> Move | None:
        """The move of this name between two states, or the first one without `name`.

        None if there is none.
        """
        for move in self.moves:
            if (move.from_, move.to) == (from_, to) and name in (None, move.name):
                return move
        return None

    def exits(self, state: str) -> tuple[Move, ...]:
        """The moves that lead from a state, in the contract's order."""
        return tuple(move for move in self.moves if move.from_ == state)

    def controls(self, state: str) -> list[str]:
        """The controls that move a record on from a state, in the contract's order."""
        controls = [move.control for move in self.exits(state)]
        return [*dict.fromkeys(filter(None, controls))]


def lifecycle_of(resource: str, raw: Json) -> Lifecycle:
    """The lifecycle of a resource, as `x-lifecycle` has it."""
    moves = []
    for move in raw["moves"]:
        events = (*filter(None, [move.get("event")]), *move.get("also", ()))
        by, name, control = tuple(move.get("by", ())), move.get("name"), move.get("control")
        moves.append(Move(move["from"], move["to"], events, by, name, control))
    sets = {key: tuple(states) for key, states in raw.get("sets", {}).items()}
    return Lifecycle(resource, raw["field"], tuple(raw["states"]), tuple(moves), sets)
