"""The catalogue: the tables of `fixtures/catalogue/`, checked against `fixtures/schemas.yaml`."""

import unicodedata
from typing import NamedTuple

from ..kernel.record import Body
from ..scenarios.files import Files


class Place(NamedTuple):
    """One neighbourhood: everything an address, a phone and a CPF need to agree with each other."""

    city: str
    state: str
    ddd: str
    bairro: str
    weight: float
    cpf_region: int
    superquadra: bool
    apartments: float  # share of flats among homes
    streets: list[tuple[str, str]]  # name and the eight digits of its CEP; in a superquadra those of block A


class Catalogue(NamedTuple):
    """All tables; `names`, `niches` and `prices` are the contents of their files."""

    places: list[Place]
    names: Body
    niches: Body
    prices: Body


def load_catalogue(files: Files) -> Catalogue:
    """Read the tables. Raises ScenarioError."""

    def read(name: str, schema: str) -> Body:
        table: Body = files.read(files.folder / "catalogue" / name, schema).value
        return table

    geography = read("geography.yaml", "Geography")
    places = [_place(row, geography["states"][row["state"]]) for row in geography["rows"]]
    tables = (("names.yaml", "Names"), ("niches.yaml", "Niches"), ("prices.yaml", "PriceTable"))
    return Catalogue(places, *(read(*table) for table in tables))


def _place(row: Body, state: Body) -> Place:
    city, uf, ddd, bairro = (row[name] for name in ("city", "state", "ddd", "bairro"))
    apartments, superquadra = row.get("apartments", 1.0), "numbering" in row
    streets = [*row["streets"].items()]
    return Place(city, uf, ddd, bairro, row["weight"], state["cpf_region"], superquadra, apartments, streets)


def plain_ascii(text: str) -> str:
    """Lower-case ASCII letters and digits only: "Conceição" -> "conceicao"."""
    plain = unicodedata.normalize("NFD", text)
    return "".join(letter for letter in plain.lower() if letter.isascii() and letter.isalnum())
