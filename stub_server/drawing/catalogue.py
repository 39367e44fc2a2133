"""The catalogue: tables of places, names, niches and prices from which the seeded world is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..scenarios.files import Files, Node


class Street(NamedTuple):
    name: str
    cep: str  # all eight digits; in a superquadra those of block A
    span: int  # the highest house number, roughly


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
    not_from_faker: tuple[str, ...]
    activities: tuple[str, ...]
    company_forms: tuple[tuple[str, float], ...]


class Product(NamedTuple):
    name: str
    type: str
    description: str


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
    monthly_up_to: int  # cents
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


class Catalogue(NamedTuple):
    places: tuple[Place, ...]
    names: Names
    niches: tuple[Niche, ...]
    edition: str
    not_in_slogans: tuple[str, ...]
    prices: Prices


def load_catalogue(folder: Path, files: Files) -> Catalogue:
    """Read and check the tables of a folder. Raises ScenarioError."""
    niches = files.read(folder / "niches.yaml", "Niches")
    files.read(folder / "banks.yaml", "Banks")  # checked here, used by the engine
    return Catalogue(
        places=_places(files.read(folder / "geography.yaml", "Geography")),
        names=_names(files.read(folder / "names.yaml", "Names")),
        niches=_niches(niches["niches"]),
        edition=niches.value["edition"],
        not_in_slogans=tuple(niches.value["not_in_slogans"]),
        prices=_prices(files.read(folder / "prices.yaml", "PriceTable")),
    )


def _places(root: Node) -> tuple[Place, ...]:
    """All neighbourhoods. Raises ScenarioError for an area code or postal code of another state."""
    states = root.value["states"]
    places = []
    for row in root["rows"].items():
        fields = row.value
        state, cep = fields["state"], fields["cep"]
        if state not in states:
            raise row["state"].fail(f"{state!r} is not among the states")
        if fields["ddd"] not in states[state]["ddd"]:
            raise row["ddd"].fail(f"{fields['ddd']} is not an area code of {state}")
        for street, code in fields["streets"].items():
            if not code.startswith(cep):
                raise row["streets"].fail(f"{street}: CEP {code} is not of the neighbourhood's {cep}")
            if not any(low <= code[:5] <= high for low, high in states[state]["cep"]):
                raise row["streets"].fail(f"{street}: CEP {code} is not of {state}")
        superquadra = "numbering" in fields
        places.append(
            Place(
                city=fields["city"],
                state=state,
                ddd=fields["ddd"],
                bairro=fields["bairro"],
                cep=cep,
                weight=fields["weight"],
                cpf_region=states[state]["cpf_region"],
                apartments=1.0 if superquadra else fields["apartments"],
                superquadra=superquadra,
                streets=tuple(_street(name, code) for name, code in fields["streets"].items()),
            )
        )
    return tuple(places)


def _street(name: str, cep: str) -> Street:
    kind = name.partition(" ")[0]
    return Street(name, cep, {"Avenida": 1_990, "Praça": 190}.get(kind, 890))


def _names(root: Node) -> Names:
    fields = root.value
    for name, (_, particle, _) in fields["surnames"].items():
        if particle not in ("", "da", "das", "de", "do", "dos"):
            raise root["surnames"][name][1].fail(f"{particle!r} is not a particle")
    return Names(
        female=tuple(fields["female"].items()),
        male=tuple(fields["male"].items()),
        surnames=tuple(Surname(name, *parts) for name, parts in fields["surnames"].items()),
        regional=tuple(
            Regional(tuple(item["states"]), item["share"], tuple(item["surnames"])) for item in fields["regional"]
        ),
        suffixes=tuple(fields["suffixes"].items()),
        not_from_faker=tuple(fields["not_from_faker"]),
        activities=tuple(fields["activities"]),
        company_forms=tuple(fields["company_forms"].items()),
    )


def _niches(root: Node) -> tuple[Niche, ...]:
    niches = []
    seen: set[str] = set()
    for item in root.items():
        for project in item["projects"].items():
            names = {project.value["slug"], project.value["name"]}
            if not seen.isdisjoint(names):
                raise project.fail(f"{project.value['name']!r} appears twice")
            seen |= names
        fields = item.value
        niches.append(
            Niche(
                key=fields["key"],
                audience=fields["audience"],
                color=fields["color"],
                monthly_up_to=_cents(item["monthly_up_to"]),
                projects=tuple(
                    Project(**project | {"products": tuple(Product(**product) for product in project["products"])})
                    for project in fields["projects"]
                ),
                features=tuple(fields["features"]),
                bumps=tuple(Bump(bump.value["title"], _cents(bump["price"])) for bump in item["bumps"].items()),
            )
        )
    return tuple(niches)


def _prices(root: Node) -> Prices:
    ladder = tuple(_cents(price) for price in root["ladder"].items())
    if list(ladder) != sorted(set(ladder)):
        raise root["ladder"].fail("must rise")
    fields = root.value
    return Prices(
        ladder=ladder,
        monthly=_price_weights(root["monthly"], ladder),
        lifetime=_price_weights(root["lifetime"], ladder),
        multiples=fields["multiples"],
        endings=tuple(
            Ending(_cents(item["below"]), _cents(item["step"]), tuple(_cents(v) for v in item["values"].items()))
            for item in root["endings"].items()
        ),
        ladder_pull=fields["ladder_pull"],
        trials=tuple((int(days), weight) for days, weight in fields["trials"].items()),
        trial_share=fields["trial_share"],
    )


def _price_weights(root: Node, ladder: tuple[int, ...]) -> tuple[tuple[int, float], ...]:
    pairs = [(round(float(price) * 100), weight) for price, weight in root.value.items()]
    for (cents, _), price in zip(pairs, root.value, strict=True):
        if cents not in ladder:
            raise root[price].fail("is not a step of the ladder")
    return tuple(pairs)


def _cents(price: Node) -> int:
    """Reais with at most two decimals as whole cents."""
    cents: int = round(price.value * 100)
    if abs(price.value * 100 - cents) > 1e-6:
        raise price.fail(f"has more than two decimals: {price.value!r}")
    return cents
