"""OpenAPI Overlay 1.0 (and the `copy` of 1.1): a user's corrections to the contract,
applied at start.
"""

import copy
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from .checks import misshapen
from .source import (
    MOST_NODES,
    ContractError,
    Json,
    JsonObject,
    line_of,
    nodes,
    parse_bounded,
    read_text,
    unescaped,
    value_at,
)

Location = tuple[str | int, ...]
"""The keys and indexes that lead to a value. Unlike a `Place`, it can be in a set."""


class Touch(NamedTuple):
    """The places that the action of this number of a file changed: of an update those
    that it names itself.
    """

    file: Path
    number: int
    places: list[Location]

    @property
    def line(self) -> str:
        """File and line.

        They are looked up only for a message, because that parses the file again.
        """
        return f"{self.file}:{line_of(self.file, ['actions', self.number]) or '?'}"


@dataclass
class Overlays:
    """Overlay files in their order, and what the actions of those that are applied have changed."""

    files: Sequence[Path]
    touches: list[Touch] = field(default_factory=list)
    _document: JsonObject = field(default_factory=dict)
    _room: int = MOST_NODES  # values that may still be written

    def apply(self, document: JsonObject) -> JsonObject:
        """The document with all actions applied, in order.

        Raises ContractError with file and line.
        """
        self._document = copy.deepcopy(document)
        for file in self.files:
            for number, action in enumerate(_actions(file)):
                touch = Touch(file, number, [])
                try:
                    touch.places.extend(self._act(action))
                except ContractError as error:
                    raise ContractError(f"{touch.line}: {error}") from None
                self.touches.append(touch)
        return self._document

    def _act(self, action: Json) -> list[Location]:
        """Apply an action; returns the places that it changed. Raises ContractError."""
        target = action["target"]
        places = _find(self._document, target)
        if not places:
            moved = _moved(self._document, target)
            raise ContractError(f"{target} selects nothing in the contract{moved}")
        if action.get("remove") is True:
            # Backwards, so that removing an item of a list does not change the index of another.
            for place in reversed(places):
                if not place:
                    raise ContractError("the whole contract cannot be removed")
                del value_at(self._document, place[:-1])[place[-1]]
            return places
        if "copy" in action:
            self._write(places, _copied(self._document, action["copy"]), target)
            return places
        self._write(places, action["update"], target)
        touched: list[Location] = []
        for place in places:
            touched += _leaves(place, action["update"])
        return touched

    def _write(self, places: Sequence[Location], change: Json, target: str) -> None:
        """Merge a change into what is at some places. Raises ContractError."""
        self._room -= len(places) * sum(len(node) for _, node in nodes([change]))
        if self._room < 0:
            raise ContractError(f"the actions write more than {MOST_NODES:,} values")
        is_plain = isinstance(change, dict) and "$ref" not in change
        for place in places:
            old = value_at(self._document, place)
            if is_plain and isinstance(old, dict) and "$ref" in old:
                raise ContractError(
                    f"{target} selects a reference, and OpenAPI ignores what stands beside one:"
                    f" select its target, {old['$ref']}"
                )
            merged = _merge(old, change)
            if not place:
                self._document = merged
            else:
                value_at(self._document, place[:-1])[place[-1]] = merged

    def last_touch(self, place: Sequence[str | int]) -> str | None:
        """File and line of the action that was the last to change a place, or None where no
        action did.
        """
        for touch in reversed(self.touches):
            for changed in touch.places:  # it is one of these, or inside one, or around it
                if place and tuple(place[: len(changed)]) == changed[: len(place)]:
                    return touch.line
        return None

    def named(self, fault: ContractError) -> ContractError:
        """A fault with file and line of the action that brought it, or all files: without them it
        is not there.
        """
        if not self.files:
            return fault
        where = self.last_touch(fault.place)
        for pointer in _POINTER.findall(str(fault)):  # an action may have removed what it leads to
            where = where or self.last_touch(unescaped(pointer))
        where = where or ", ".join(map(str, self.files))
        return ContractError(f"{where}: {fault}")

    def refuse(self, faults: Iterable[ContractError]) -> None:
        """Raises ContractError with all faults, one a line, if there are any."""
        found = dict.fromkeys(str(self.named(fault)) for fault in faults)
        if found:
            raise ContractError("\n".join(found))


def _actions(file: Path) -> list[Json]:
    overlay = parse_bounded(read_text(file, str(file)), str(file))
    for fault in misshapen(overlay, "overlay.yaml"):  # the first: a line is found by reading all
        raise ContractError(f"{file}:{line_of(file, list(fault.place)) or '?'}: {fault}")
    actions: list[Json] = overlay["actions"]
    return actions


def _leaves(place: Location, change: Json) -> Iterator[Location]:
    """The places, within that of a value, of what is no object in it, or is an empty one."""
    if not isinstance(change, dict) or not change:
        yield place
        return
    for name, member in change.items():
        yield from _leaves((*place, name), member)


_POINTER = re.compile(r"#(/[^\s'\",]+)")
_LONGEST_PATH = 1_000  # characters: each step of a path is a call within that of the step before it


def _moved(document: JsonObject, target: str) -> str:
    """Where a place is now that an earlier version of the contract had."""
    for old, new in document.get("x-moved", {}).items():
        if target.startswith(old):
            return f": it is {new}{target.removeprefix(old)} now"
    return ""


def _copied(document: JsonObject, path: Json) -> Json:
    """A copy of the one thing that a path selects. Raises ContractError."""
    sources = _find(document, path)
    if len(sources) != 1:
        raise ContractError(f"copy must select one thing, {path} selects {len(sources)}")
    return copy.deepcopy(value_at(document, sources[0]))


def _find(document: Json, path: object) -> list[Location]:
    # takes 20 ms, which a start without overlays saves
    from jsonpath_rfc9535 import JSONPathError, find

    if len(str(path)) > _LONGEST_PATH:
        raise ContractError(
            f"{str(path)[:60]}… has more than {_LONGEST_PATH:,} characters, the most of a JSONPath"
        )
    try:
        return [node.location for node in find(str(path), document)]
    except (JSONPathError, RecursionError) as error:
        raise ContractError(f"{path} is not a JSONPath: {' '.join(str(error).split())}") from None


def _merge(old: Json, new: Json) -> Json:
    """Overlay's merge: objects member by member, an array appends to an array, everything
    else replaces.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        merged = dict(old)
        for name, value in new.items():
            merged[name] = _merge(old[name], value) if name in old else copy.deepcopy(value)
        return merged
    if isinstance(old, list):
        return old + copy.deepcopy(new if isinstance(new, list) else [new])
    if isinstance(old, dict):
        raise ContractError("an object can only be updated with an object")
    return copy.deepcopy(new)
