"""What a probe found, and the divergences that are merged from findings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...contract.source import fixture
from ...core.record import Body
from ...core.text import shortened

CLASSES: dict[str, Body] = fixture("verify.yaml")["classes"]
"""The classes of divergences, with what is said of each. The first that fits names what a probe
found.
"""
RANKS = {kind: number for number, kind in enumerate(CLASSES)}
SEVERITY = sorted(CLASSES, key=lambda kind: CLASSES[kind].get("costs", len(CLASSES)))
"""The order of a report: first what costs data or money."""
GROUPS = ("accepts", "rejects", "persists", "filters", "transitions")
"""The groups of probes, which are the columns of a report."""
LONGEST = 300  # characters of an excerpt
LISTED = "a record of the list"
"""What is tried with each of the first records of a list."""
_MOST_NAMES = 5


class Shown(NamedTuple):
    """A request as a report shows it, without secrets."""

    method: str
    path: str
    curl: str


class Said(NamedTuple):
    """An answer as a report shows it: its status and an excerpt of its body.

    Status 0 means no answer.
    """

    status: int
    excerpt: str


class Words(str):
    """A description that stands where a value would, such as `nothing`; shown without quotes."""


class Got(NamedTuple):
    """A value in an answer, with its name."""

    name: str
    value: Any


_NOT_SHOWN, _NOTHING = Shown("", "", ""), Said(0, "")


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """One way in which an answer departs.

    - `kind` is one of `CLASSES`. `pointer` leads to the line of the contract (`#/paths/…`).
    - `place` is the member or parameter that was sent, and `tries` says in a few words how, without
      values that differ between runs.
    - Without `got`, the whole answer is shown.
    - `operation` is the one that it is about; `group` is one of `GROUPS`.
    - `request` and `target` are the exchange as a report shows it.
    """

    kind: str
    pointer: str
    title: str
    expected: Said
    got: Got | None = None
    operation: str = ""
    place: str = ""
    tries: str = ""
    group: str = ""
    request: Shown = _NOT_SHOWN
    target: Said = _NOTHING


class Line(NamedTuple):
    """A line of the contract. `file` is its path in the repository (`openapi/…`), or the path of an
    overlay as given.

    `number` counts from 1. `text` is the line, and the next one if it has only a name.
    """

    file: str
    number: int
    text: str


@dataclass(slots=True)
class Divergence:
    """One way in which the target departs. `basis` is `documented` or `assumed`, by the contract's
    `x-basis`.

    `operations` are in the contract's order. `overlay` has the `actions` of an OpenAPI Overlay that
    corrects the contract, if one was found and proved; `is_tried` says whether it was looked for.
    `line` is where the contract says otherwise.
    """

    fingerprint: str
    operations: list[str]
    title: str
    basis: str
    line: Line
    findings: list[Finding]
    overlay: Body | None = None
    is_tried: bool = False

    @property
    def shown(self) -> Finding:
        """The finding that a report shows."""
        return self.findings[0]

    @property
    def kind(self) -> str:
        """Its class."""
        return self.shown.kind

    @property
    def cases(self) -> list[tuple[str, str]]:
        """The pairs of operation and group in which it was found."""
        return list(dict.fromkeys((each.operation, each.group) for each in self.findings))


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Some names, and how many more there are."""
    more = len(names) - _MOST_NAMES
    return between.join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def cut(text: str, most: int = LONGEST) -> str:
    """A text on one line, cut if it is too long."""
    return shortened(" ".join(text[: most * 4].split()), most)
