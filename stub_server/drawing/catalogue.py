"""The catalogue: the tables of `fixtures/catalogue/`, checked against `fixtures/schemas.yaml`."""

from __future__ import annotations

import unicodedata
from typing import Any, NamedTuple

from ..kernel.record import Body
from ..scenarios.files import Files

HIGHEST_NUMBERS = {"Avenida": 1_990, "Praça": 190}  # of houses, roughly, by the first word of the street's name
HIGHEST_NUMBER = 890


class Street(NamedTuple):
    name: str
    cep: str  # all eight digits; in a superquadra those of block A
    highest_number: int


class Place(NamedTuple):
    """One neighbourhood: everything an address, a phone and a CPF need to agree with each other."""

    city: str
    state: str
    ddd: str
    bairro: str
    weight: float
    cpf_region: int
    apartments: float  # share of flats among homes
    superquadra: bool
    streets: tuple[Street, ...]


class Catalogue(NamedTuple):
    """All tables; `names`, `niches` and `prices` are the contents of their files."""

    places: tuple[Place, ...]
    names: Body
    niches: Body
    prices: Body


def load_catalogue(files: Files) -> Catalogue:
    """Read the tables. Raises ScenarioError."""

    def read(name: str, schema: str) -> Any:
        return files.read(files.folder / "catalogue" / name, schema).value

    geography = read("geography.yaml", "Geography")
    return Catalogue(
        places=tuple(_place(row, geography["states"][row["state"]]) for row in geography["rows"]),
        names=read("names.yaml", "Names"),
        niches=read("niches.yaml", "Niches"),
        prices=read("prices.yaml", "PriceTable"),
    )


def _place(row: Body, state: Body) -> Place:
    is_superquadra = "numbering" in row
    return Place(
        city=row["city"],
        state=row["state"],
        ddd=row["ddd"],
        bairro=row["bairro"],
        weight=row["weight"],
        cpf_region=state["cpf_region"],
        apartments=1.0 if is_superquadra else row["apartments"],
        superquadra=is_superquadra,
        streets=tuple(
            Street(name, cep, HIGHEST_NUMBERS.get(name.partition(" ")[0], HIGHEST_NUMBER))
            for name, cep in row["streets"].items()
        ),
    )


def plain_ascii(text: str) -> str:
    """Lower-case ASCII letters and digits only: "Conceição" -> "conceicao"."""
    plain = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in plain.lower() if letter.isascii() and letter.isalnum())
