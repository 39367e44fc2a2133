"""Faker's catalogue of Brazilian memberships: projects with texts, plans, prices and products, by niche.

Slogans are Faker's own; what a project teaches and what it costs stands in our tables.
"""

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import NamedTuple

from faker import Generator
from faker.providers import BaseProvider

from ..kernel.record import Body
from .tables import plain_ascii, table, weighted

SOURCES = ("instagram", "google", "youtube", "facebook", "indicacao")
AFFILIATES = 0.4
#: Which plans a project has, with the share of projects.
MENUS = weighted(
    {
        "Mensal Anual": 40,
        "Mensal Trimestral Anual": 30,
        "Mensal Anual Vitalício": 15,
        "Mensal Trimestral Anual Vitalício": 15,
    }
)
#: Share of a project's sales.
SALES = {"Mensal": 55.0, "Trimestral": 7.0, "Anual": 35.0, "Vitalício": 3.0}
INTERVALS: dict[str, tuple[str | None, int | None]] = {
    "Mensal": ("month", 1),
    "Trimestral": ("month", 3),
    "Anual": ("year", 1),
    "Vitalício": (None, None),
}
BRIEFLY = 3  # so many features of the niche come with the plan that is paid by the month
FEATURES = 5


class Membership(NamedTuple):
    """A project to sell: a ProjectCreate, PlanCreates and ProductCreates without the ids that they get.

    Each product stands beside the names of the plans that unlock it. `bumps` are (title, reais) of extras that are
    offered at checkout.
    """

    slug: str
    project: Body
    plans: list[Body]
    products: list[tuple[Body, list[str]]]
    bumps: list[tuple[str, float]]


class CatalogueProvider(BaseProvider):
    """`price`, `plan`, `project` and `membership` for a Faker of `pt_BR`."""

    __use_weighting__ = True

    def __init__(self, generator: Generator) -> None:
        super().__init__(generator)
        self._prices: Body = table("prices")["monthly"]
        niches: list[Body] = table("niches")["niches"]
        self._offered = {project["slug"]: (niche, project) for niche in niches for project in niche["projects"]}

    # -- prices and plans

    def price(self, most: float | None = None) -> float:
        """What a membership costs a month, in reais; at most so much."""
        shares = {price: row["share"] for price, row in self._prices.items() if most is None or float(price) <= most}
        return float(self.random_element(weighted(shares)))

    def plan(self) -> Body:
        """A PlanCreate without its projectId."""
        return self.random_element(self.membership().plans)

    def _plans(self, niche: Body, *, has_trial: bool) -> Iterator[Body]:
        """The plans of one project, cheapest first."""
        monthly = self.price(niche["monthly_up_to"])
        longer: Body = self._prices[f"{monthly:.2f}"]
        drawn = self.random_sample(niche["features"], min(FEATURES, len(niche["features"])))
        features = [feature for feature in niche["features"] if feature in drawn]
        trial_days = int(self.random_element(weighted(table("prices")["trials"]))) if has_trial else 0
        for name in self.random_element(MENUS).split():
            if name == "Mensal":
                more = f" {trial_days} dias a mais no primeiro mês." if trial_days else ""
                text = f"Acesso completo, renovado todo mês.{more} Cancele quando quiser."
                yield _plan(name, monthly, text, features[:BRIEFLY]) | {"trial_period_days": trial_days}
            elif name == "Trimestral":
                text = f"Três meses de acesso. Sai por {printed(longer['quarterly'] / 3)} por mês."
                yield _plan(name, longer["quarterly"], text, features)
            elif name == "Anual":
                text = f"Um ano de acesso. Sai por {printed(longer['yearly'] / 12)} por mês."
                yield _plan(name, longer["yearly"], text, features)
            else:
                amount = float(self.random_element(weighted(longer["lifetime"])))
                text = "Pagamento único, com acesso vitalício a todo o conteúdo."
                yield _plan(name, amount, text, [*features, "Acesso vitalício"])

    # -- projects

    def project(self) -> Body:
        """A ProjectCreate."""
        return self.membership().project

    def slugs(self) -> list[str]:
        """The projects of the catalogue, so shuffled that each niche has its turn."""
        niches = [self._shuffled(niche["projects"]) for niche in self._shuffled(table("niches")["niches"])]
        return [project["slug"] for project in chain.from_iterable(zip_longest(*niches)) if project is not None]

    def _shuffled(self, items: list[Body]) -> list[Body]:
        return sorted(items, key=lambda item: self.generator.random.random())

    def membership(self, slug: str = "", edition: int = 1, *, has_trial: bool | None = None) -> Membership:
        """A project with all that is sold in it: one of the catalogue by its slug, or any.

        A later edition has another name and slug. Raises KeyError for an unknown slug.
        """
        niche, project = self._offered[slug or self.random_element(tuple(self._offered))]
        name, slug = project["name"], project["slug"]
        if edition > 1:
            again = table("niches")["edition"]
            name, slug = f"{name}: {again} {edition}", f"{slug}-{plain_ascii(again)}-{edition}"
        if has_trial is None:
            has_trial = self.generator.random.random() < table("prices")["trial_share"]
        plans = list(self._plans(niche, has_trial=has_trial))
        names = [plan["name"] for plan in plans]
        products = [
            (_product(niche, product, slug, number), _unlocking(product, names))
            for number, product in enumerate(project["products"], start=1)
        ]
        bumps = [(bump["title"], bump["price"]) for bump in niche["bumps"]]
        return Membership(slug, self._project(niche, project, name, slug), plans, products, bumps)

    def slogan(self) -> str:
        """One of Faker's catch phrases that reads well and promises no money."""
        barred = table("niches")["not_in_slogans"]
        slogan = str(self.generator.format("catch_phrase"))
        while any(words in slogan for words in barred):
            slogan = str(self.generator.format("catch_phrase"))
        return slogan

    def _project(self, niche: Body, project: Body, name: str, slug: str) -> Body:
        return {
            "name": name,
            "description": project["description"],
            "long_description": project["long_description"],
            "logo_url": f"https://assets.example.com/{slug}/logo.png",
            "cover_image": f"https://assets.example.com/{slug}/capa.jpg",
            "website_url": f"https://www.example.com/{slug}",
            "visibility": self.random_element(weighted({"public": 85, "unlisted": 15})),
            "business_settings": {
                "legal_name": f"{self.generator.format('surname')} Educação Digital Ltda.",
                "support_email": f"suporte.{slug}@example.com",
                "timezone": "America/Sao_Paulo",
                "refund_days": "7",
            },
            "marketing_settings": self._marketing(project),
            "content_settings": {
                "language": "pt-BR",
                "release": self.random_element(("immediate", "weekly", "weekly")),
                "certificate": "true" if any(each["type"] == "course" for each in project["products"]) else "false",
                "theme_color": f"#{niche['color']}",
            },
            "notification_settings": {
                "sender_name": f"Equipe {project['name']}",
                "welcome_email": "true",
                "renewal_reminder_days": self.random_element(("1", "3", "3", "5")),
            },
            "metadata": {"niche": niche["key"], "audience": niche["audience"]},
        }

    def _marketing(self, project: Body) -> Body:
        hashtag = "".join(word[0].upper() + word[1:] for word in project["name"].split())
        settings = {
            "slogan": self.slogan(),
            "hashtag": f"#{hashtag}",
            "main_source": self.random_element(SOURCES),
            "affiliates": "false",
        }
        if self.generator.random.random() < AFFILIATES:
            settings |= {"affiliates": "true", "affiliate_percent": self.random_element(("20", "30", "40", "50"))}
        return settings


def _plan(name: str, amount: float, description: str, features: list[str]) -> Body:
    interval, interval_count = INTERVALS[name]
    return {
        "name": name,
        "description": description,
        "amount": amount,
        "billing_type": "recurring" if interval else "one_time",
        "interval": interval,
        "interval_count": interval_count,
        "trial_period_days": 0,
        "payment_methods": ["pix", "credit_card", "boleto"],
        "features": features,
    }


def _product(niche: Body, product: Body, slug: str, number: int) -> Body:
    first, *others = slug.split("-")
    # One letter of the first word would be the same for Contas do MEI and Churrasco de Mestre.
    initials = first[:3] + "".join(word if word.isdigit() else word[0] for word in others)
    return {
        "name": product["name"],
        "description": product["description"],
        "type": product["type"],
        "image_url": f"https://assets.example.com/{slug}/produto-{number}.jpg",
        "access_url": f"https://membros.example.com/{slug}/{number}",
        "sku": f"{initials.upper()}-{number:02d}",
        "metadata": {"niche": niche["key"]},
    }


def _unlocking(product: Body, plans: list[str]) -> list[str]:
    """The plans that unlock a product: mentorship comes with the dearer ones only, everything else with all."""
    return plans[1:] if product["type"] == "mentorship" else plans


def printed(amount: float) -> str:
    """As Brazilians print an amount: 1234.56 -> "R$ 1.234,56"."""
    return "R$ " + f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))
