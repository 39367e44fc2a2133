"""The list of planted defects: a sample that was drawn once, and is carried along by the commits
that move its code.
"""

from dataclasses import dataclass
from pathlib import Path

import yaml

from .changes import Mutant, mutants

PLANTED = Path(__file__).with_name("planted.yaml")


@dataclass(frozen=True, slots=True)
class Planted:
    """A listed defect, found in the code."""

    number: int
    mutant: Mutant
    reason: str | None
    """Why no test can notice it, or none should."""


def find(package: Path) -> tuple[list[Planted], list[str]]:
    """Each entry's change in the code, in the order of the list; and the entries whose
    code is not there.
    """
    found = []
    lost = []
    changes: dict[str, dict[tuple[str, str, int], Mutant]] = {}
    for number, row in enumerate(yaml.safe_load(PLANTED.read_text(encoding="utf-8")), 1):
        module = row["module"]
        if module not in changes:
            changes[module] = _changes(package, module)
        mutant = changes[module].get((row["code"], row["change"], row.get("nth", 0)))
        if mutant is None:
            lost.append(f"{number}: {module}: {row['code']}: {row['change']}")
        else:
            found.append(Planted(number, mutant, row.get("reason")))
    return found, lost


def _changes(package: Path, module: str) -> dict[tuple[str, str, int], Mutant]:
    file = package / module
    source = file.read_text(encoding="utf-8") if file.is_file() else ""
    return {(mutant.code, mutant.change, mutant.nth): mutant for mutant in mutants(source, module)}
