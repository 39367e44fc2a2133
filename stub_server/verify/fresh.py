"""Values that no record of the target has yet, and that nobody takes for real ones."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from string import ascii_lowercase, digits
from typing import Any

from ..domain.documents import cpf_with_check_digits

NOWHERE = "https://verify.invalid/"
_LETTERS = ascii_lowercase + digits


class Fresh:
    """Draws values. `run` is a text of this run, so that two runs of one seed do not meet."""

    def __init__(self, run: str, seed: int, journey: str) -> None:
        self.run = run
        self._random = Random(f"{run}/{seed}/{journey}")
        self.tag = f"verify-{run}-{self.text(6)}"
        """What the names of one journey begin with: lists are narrowed to its records by it."""

    def text(self, length: int) -> str:
        """Letters and digits."""
        return "".join(self._random.choices(_LETTERS, k=length))

    def name(self, most: int = 120) -> str:
        """A name that says where it comes from, if there is room."""
        text_ = f"{self.tag}-{self.text(6)}"
        return text_ if len(text_) <= most else self.text(most)

    def document(self) -> str:
        """A CPF whose check digits hold."""
        return cpf_with_check_digits("".join(self._random.choices(digits, k=9)))

    def value(self, member: str) -> str | None:
        """What a member of a request has that no other record may have; None for other members."""
        match member:
            case "document":
                return self.document()
            case "email":
                return f"{self.tag}-{self.text(6)}@example.com"
            case "name" | "sku":
                return self.name(64)
            case "url":
                return f"{NOWHERE}{self.tag}-{self.text(6)}"
        return None

    def renewed(self, value: Any, kept: frozenset[tuple[str, ...]] = frozenset(), at: tuple[str, ...] = ()) -> Any:
        """The same body with new values in such members, but for those at the places `kept`."""
        if not isinstance(value, Mapping):
            return value
        renewed = {}
        for member, inner in value.items():
            place = (*at, member)
            own = self.value(member) if isinstance(inner, str) and place not in kept else None
            renewed[member] = self.renewed(inner, kept, place) if own is None else own
        if "document" in renewed and "document" in value and (*at, "document") not in kept:
            follows = {(*at, name) for name in ("document_type", "type")} - kept
            renewed = {name: inner for name, inner in renewed.items() if (*at, name) not in follows}
        return renewed
