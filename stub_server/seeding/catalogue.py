"""The catalogue: tables of places, names, niches, prices and banks from which the seeded world is drawn.

`load_catalogue(folder)` reads and checks `geography names niches prices banks`.yaml; every error is a
CatalogueError that names file and key.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from stub_server.seeding.tables import Node, to_cents

PRODUCT_TYPES = ("course", "community", "ebook", "event", "mentorship", "software", "other")


class Street(NamedTuple):
    name: str
    cep: str  # the first five digits
    span: int  # house numbers reach about this far


class Place(NamedTuple):
    """One neighbourhood: everything an address, a phone and a CPF need to agree with each other."""

    city: str
    state: str
    ddd: str
    bairro: str
    cep: str
    weight: float
    cpf_region: int
    apartments: float  # share of flats among homes
    superquadra: bool
    streets: tuple[Street, ...]


class Surname(NamedTuple):
    name: str
    weight: float
    particle: str
    particle_share: float


class Regional(NamedTuple):
    states: tuple[str, ...]
    share: float
    surnames: tuple[str, ...]


class Names(NamedTuple):
    female: tuple[tuple[str, float], ...]
    male: tuple[tuple[str, float], ...]
    surnames: tuple[Surname, ...]
    regional: tuple[Regional, ...]
    suffixes: tuple[tuple[str, float], ...]
    given_not_from_faker: tuple[str, ...]
    surnames_not_from_faker: tuple[str, ...]
    activities: tuple[str, ...]
    company_suffixes: tuple[str, ...]


class Product(NamedTuple):
    name: str
    type: str


class Bump(NamedTuple):
    """A small extra offered at checkout."""

    title: str
    cents: int


class Project(NamedTuple):
    name: str
    slug: str
    description: str
    long_description: str
    products: tuple[Product, ...]


class Niche(NamedTuple):
    key: str
    audience: str
    color: str
    projects: tuple[Project, ...]
    features: tuple[str, ...]
    bumps: tuple[Bump, ...]


class Ending(NamedTuple):
    """Prices below `below` cents may be `step * k + value`."""

    below: int
    step: int
    values: tuple[int, ...]


class Prices(NamedTuple):
    """All amounts in cents."""

    ladder: tuple[int, ...]
    monthly: tuple[tuple[int, float], ...]
    lifetime: tuple[tuple[int, float], ...]
    multiples: dict[str, float]
    endings: tuple[Ending, ...]
    ladder_pull: float
    trials: tuple[tuple[int, float], ...]
    trial_share: float


class Bank(NamedTuple):
    ispb: str
    name: str
    weight: float


class Catalogue(NamedTuple):
    places: tuple[Place, ...]
    names: Names
    niches: tuple[Niche, ...]
    edition: str
    not_in_slogans: tuple[str, ...]
    prices: Prices
    banks: tuple[Bank, ...]


def load_catalogue(folder: Path) -> Catalogue:
    """Read and check the tables of `folder`. Raises CatalogueError."""
    niches = Node.load(folder / "niches.yaml")
    return Catalogue(
        places=_places(Node.load(folder / "geography.yaml")),
        names=_names(Node.load(folder / "names.yaml")),
        niches=_niches(niches["niches"]),
        edition=niches["edition"].text(),
        not_in_slogans=niches["not_in_slogans"].texts(),
        prices=_prices(Node.load(folder / "prices.yaml")),
        banks=tuple(
            Bank(bank["ispb"].digits(8, 8), bank["name"].text(), bank["weight"].number(0.01, 1000))
            for bank in Node.load(folder / "banks.yaml")["banks"].items()
        ),
    )


def _places(root: Node) -> tuple[Place, ...]:
    states = dict(root["states"].entries())
    places = []
    for row in root["rows"].items():
        state, ddd, cep = row["state"].text(), row["ddd"].digits(2, 2), row["cep"].digits(3, 5)
        if state not in states:
            raise row["state"].fail(f"{state!r} is not among the states")
        facts = states[state]
        if ddd not in facts["ddd"].texts():
            raise row["ddd"].fail(f"{ddd} is not an area code of {state}")
        ranges = [bounds.texts() for bounds in facts["cep"].items()]
        streets = tuple(_street(str(name), node) for name, node in row["streets"].entries())
        for street in streets:
            if not street.cep.startswith(cep):
                raise row["streets"].fail(f"{street.name}: CEP {street.cep} is not of the neighbourhood's {cep}")
            if not any(low <= street.cep <= high for low, high in ranges):
                raise row["streets"].fail(f"{street.name}: CEP {street.cep} is not of {state}")
        superquadra = row.has("numbering")
        if superquadra and row["numbering"].text() != "superquadra":
            raise row["numbering"].fail("can only be superquadra")
        places.append(
            Place(
                city=row["city"].text(),
                state=state,
                ddd=ddd,
                bairro=row["bairro"].text(),
                cep=cep,
                weight=row["weight"].number(0.01, 1000),
                cpf_region=int(facts["cpf_region"].number(0, 9)),
                apartments=1.0 if superquadra else row["apartments"].number(0, 1),
                superquadra=superquadra,
                streets=streets,
            )
        )
    return tuple(places)


def _street(name: str, cep: Node) -> Street:
    kind = name.partition(" ")[0]
    return Street(name, cep.digits(5, 5), {"Avenida": 1_990, "Praça": 190}.get(kind, 890))


def _names(root: Node) -> Names:
    surnames = []
    for name, node in root["surnames"].entries():
        weight, particle, share = node.triple()
        if particle.value not in ("", "da", "das", "de", "do", "dos"):
            raise particle.fail(f"{particle.value!r} is not a particle")
        surnames.append(Surname(str(name), weight.number(0.01, 1000), particle.value, share.number(0, 1)))
    excluded = root["not_from_faker"]
    return Names(
        female=root["female"].weights(),
        male=root["male"].weights(),
        surnames=tuple(surnames),
        regional=tuple(
            Regional(item["states"].texts(), item["share"].number(0, 1), item["surnames"].texts())
            for item in root["regional"].items()
        ),
        suffixes=root["suffixes"].weights(),
        given_not_from_faker=excluded["given"].texts(),
        surnames_not_from_faker=excluded["surnames"].texts(),
        activities=root["activities"].texts(),
        company_suffixes=root["company_suffixes"].texts(),
    )


def _niches(root: Node) -> tuple[Niche, ...]:
    niches = []
    seen: dict[str, str] = {}
    for item in root.items():
        projects = tuple(_project(project) for project in item["projects"].items())
        for project in projects:
            if project.slug in seen or project.name in seen.values():
                raise item["projects"].fail(f"{project.name!r} stands twice")
            seen[project.slug] = project.name
        niches.append(
            Niche(
                key=item["key"].text(),
                audience=item["audience"].text(),
                color=item["color"].text(),
                projects=projects,
                features=item["features"].texts(),
                bumps=tuple(Bump(bump["title"].text(), bump["price"].cents()) for bump in item["bumps"].items()),
            )
        )
    return tuple(niches)


def _project(node: Node) -> Project:
    products = []
    for item in node["products"].items():
        kind = item["type"].text()
        if kind not in PRODUCT_TYPES:
            raise item["type"].fail(f"{kind!r} is not one of {', '.join(PRODUCT_TYPES)}")
        products.append(Product(item["name"].text(), kind))
    description = node["description"].text()
    if len(description) > 500:
        raise node["description"].fail("is longer than 500 characters")
    return Project(
        node["name"].text(), node["slug"].text(), description, node["long_description"].text(), tuple(products)
    )


def _prices(root: Node) -> Prices:
    ladder = tuple(price.cents() for price in root["ladder"].items())
    if list(ladder) != sorted(set(ladder)):
        raise root["ladder"].fail("must rise")
    return Prices(
        ladder=ladder,
        monthly=_price_weights(root["monthly"], ladder),
        lifetime=_price_weights(root["lifetime"], ladder),
        multiples={period: root["multiples"][period].number(1, 100) for period in ("quarterly", "yearly", "lifetime")},
        endings=tuple(
            Ending(
                below=item["below"].cents(),
                step=item["step"].cents(),
                values=tuple(value.cents() for value in item["values"].items()),
            )
            for item in root["endings"].items()
        ),
        ladder_pull=root["ladder_pull"].number(0, 0.5),
        trials=tuple((int(days), node.number(0.01, 1000)) for days, node in root["trials"].entries()),
        trial_share=root["trial_share"].number(0, 1),
    )


def _price_weights(root: Node, ladder: tuple[int, ...]) -> tuple[tuple[int, float], ...]:
    pairs = []
    for reais, node in root.entries():
        cents = to_cents(reais, node)
        if cents not in ladder:
            raise node.fail("is not a step of the ladder")
        pairs.append((cents, node.number(0.01, 1000)))
    return tuple(pairs)
