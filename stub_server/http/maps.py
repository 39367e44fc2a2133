"""Maps with free keys, such as metadata: finds them in request schemas, and refuses invalid keys."""

from collections.abc import Callable, Iterator
from typing import Any

from ..contract.document import Operation
from ..contract.schema import LONGEST_KEY
from ..contract.source import Json
from ..kernel.problem import Conflict, detail

CODE = "metadata_key_invalid"
ADVICE = f"A key has 1 to {LONGEST_KEY} characters and no NUL."
_DEEPEST = 8

Place = tuple[str, ...]


def kept_maps(operation: Operation, resolve: Callable[[Json], Json]) -> Iterator[Place]:
    """Where the body of an operation has maps whose keys are kept: the contract then lists the code of invalid ones.

    What a verification names is compared and forgotten: it may be any key that a request can have.
    """
    conflict = operation.responses.get(409)
    if conflict is not None and CODE in conflict.codes:
        yield from free_maps(operation.body, resolve)


def free_maps(schema: Json, resolve: Callable[[Json], Json], place: Place = ()) -> Iterator[Place]:
    """Where a schema has maps from free keys to strings, as the members that lead there."""
    schema = resolve(schema)
    if not isinstance(schema, dict) or len(place) > _DEEPEST:
        return
    rest = resolve(schema.get("additionalProperties"))
    if isinstance(rest, dict) and rest.get("type") == "string":
        yield place
    for name, member in schema.get("properties", {}).items():
        yield from free_maps(member, resolve, (*place, name))


def check_names(body: Json, places: tuple[Place, ...]) -> None:
    """Raises Conflict for keys that OpenAPI 3.0 cannot forbid: empty, too long, or with NUL."""
    wrong = []
    for place in places:
        node: Any = body
        for step in place:
            node = node.get(step)
            if type(node) is not dict:
                break
        else:
            for name in node:
                if not name or len(name) > LONGEST_KEY or "\0" in name:
                    wrong.append(detail(".".join(place), CODE, ADVICE))
                    break
    if wrong:
        named = ", ".join(entry["field"] for entry in wrong)
        raise Conflict(f"{named}: a key has 1 to {LONGEST_KEY} characters and no NUL.", code=CODE, details=wrong)
