"""The catalogue: the tables of `fixtures/catalogue/`, checked against `fixtures/schemas.yaml`."""

from __future__ import annotations

import unicodedata
from typing import Any, NamedTuple

from ..kernel.money import cents
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


class Ending(NamedTuple):
    """Prices below `below` cents may be `step * k + value`."""

    below: int
    step: int
    values: list[int]


class Prices(NamedTuple):
    """The price table, with all amounts in cents."""

    ladder: list[int]
    monthly: list[tuple[int, float]]
    lifetime: list[tuple[int, float]]
    multiples: dict[str, float]
    endings: list[Ending]
    ladder_pull: float
    trials: list[tuple[int, float]]
    trial_share: float


class Catalogue(NamedTuple):
    """All tables; `names` and `niches` are the contents of their files."""

    places: tuple[Place, ...]
    names: Body
    niches: Body
    prices: Prices


def load_catalogue(files: Files) -> Catalogue:
    """Read the tables. Raises ScenarioError."""

    def read(name: str, schema: str) -> Any:
        return files.read(files.folder / "catalogue" / name, schema).value

    geography = read("geography.yaml", "Geography")
    places = tuple(_place(row, geography["states"][row["state"]]) for row in geography["rows"])
    names, niches = read("names.yaml", "Names"), read("niches.yaml", "Niches")
    return Catalogue(places, names, niches, _prices(read("prices.yaml", "PriceTable")))


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


def _prices(table: Body) -> Prices:
    monthly, lifetime = (
        [(cents(float(price)), weight) for price, weight in table[name].items()] for name in ("monthly", "lifetime")
    )
    endings = [
        Ending(cents(item["below"]), cents(item["step"]), [cents(value) for value in item["values"]])
        for item in table["endings"]
    ]
    return Prices(
        ladder=[cents(price) for price in table["ladder"]],
        monthly=monthly,
        lifetime=lifetime,
        multiples=table["multiples"],
        endings=endings,
        ladder_pull=table["ladder_pull"],
        trials=[(int(days), weight) for days, weight in table["trials"].items()],
        trial_share=table["trial_share"],
    )


def plain_ascii(text: str) -> str:
    """Lower-case ASCII letters and digits only: "Conceição" -> "conceicao"."""
    plain = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in plain.lower() if letter.isascii() and letter.isalnum())
