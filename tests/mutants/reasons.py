"""Changes that no test can notice, or that none should: what makes no difference, and the reason why."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import yaml

from .sampling import Mutant

TABLE = Path(__file__).with_name("reasons.yaml")


@dataclass(frozen=True, slots=True)
class Reasons:
    """By module, line and change."""

    known: dict[tuple[str, str, str], str]

    @classmethod
    def read(cls) -> Self:
        """From the table beside this module."""
        rows: list[dict[str, str]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
        return cls({(row["module"], row["code"], row["change"]): " ".join(row["reason"].split()) for row in rows})

    def of(self, mutant: Mutant) -> str | None:
        """Why it may go unnoticed, if it may."""
        return self.known.get((mutant.module, mutant.code, mutant.change))
