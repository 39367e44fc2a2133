"""What an action has before it when it chooses what to ask."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from stub_server.engine.sandbox import Sandbox
from stub_server.engine.tables.table import Table

UNKNOWN = "00000000-0000-4000-8000-000000000000"
MERCHANTS = ("", "1c1d2e3f-4a5b-4c6d-8e7f-001122334455", "2c1d2e3f-4a5b-4c6d-8e7f-001122334455")
"""The seeded one, and two whom the world gets to know on the way."""
Item = TypeVar("Item")


class Request(NamedTuple):
    """What is sent."""

    method: str
    target: str
    body: object = None


@dataclass(slots=True)
class Scene:
    """What an action looks at to choose: a world, the addresses of webhooks, and how many requests there have been."""

    world: Sandbox
    hooks: tuple[str, ...]
    serial: int = 0


def pick(items: Sequence[Item], number: int) -> Item:
    """One of the items, the newest for 0."""
    return items[-1 - number % len(items)]


def one(table: Table, number: int) -> str:
    """The id of a record, the newest for 0; one in eleven times of none, and where there is none."""
    if not len(table) or number == 10:
        return UNKNOWN
    return table.rows[pick(list(table.order), number)].id
