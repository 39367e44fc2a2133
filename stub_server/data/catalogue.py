"""Faker's catalogue of Brazilian memberships: projects with texts, plans, prices and products, by
niche.

Faker makes the slogans. Our tables say what each project teaches and what it costs.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from faker.providers import BaseProvider

from ..core.record import Body
from .tables import Shares, pick, table

FEATURES = 5  # so many of the niche at most; how many a plan has, its row says


class Membership(NamedTuple):
    """A project to sell: a ProjectCreate, PlanCreates and ProductCreates without the ids that they
    get.

    Each plan unlocks every product. `bumps` are (title, reais) of extras that are offered at
    checkout.
    """

    project: Body
    plans: list[Body]
    products: list[Body]
    bumps: list[tuple[str, float]]


class CatalogueProvider(BaseProvider):
    """`price`, `plan`, `project` and `membership` for a Faker of `pt_BR`."""

    __use_weighting__ = True

    # -- prices and plans

    def price(self, most: float) -> float:
        """What a membership costs a month, in reais; at most so much."""
        affordable = {}
        for price, row in table("prices")["monthly"].items():
            if float(price) <= most:
                affordable[float(price)] = row["share"]
        return float(Shares(affordable).draw(self.generator.random)[0])

    def plan(self) -> Body:
        """A PlanCreate without its projectId."""
        return self.random_element(self.membership().plans)

    def _plans(self, niche: Body, *, has_trial: bool) -> Iterator[Body]:
        """The plans of one project, cheapest first."""
        monthly = self.price(niche["monthly_up_to"])
        prices: Body = table("prices")["monthly"][f"{monthly:.2f}"]
        some = self.random_sample(
            range(len(niche["features"])), min(FEATURES, len(niche["features"]))
        )
        features = [niche["features"][number] for number in sorted(some)]
        for name in pick(self.generator.random, "habits", "menus").split():
            row, amount, trial_days, trial = table("niches")["plans"][name], monthly, 0, ""
            if row["price"] == "lifetime":
                amount = float(Shares(prices["lifetime"]).draw(self.generator.random)[0])
            elif row["price"] != "monthly":
                amount = prices[row["price"]]
            elif has_trial:
                trial_days = int(pick(self.generator.random, "prices", "trials"))
                trial = table("niches")["trial"].format(days=trial_days)
            yield {
                "name": name,
                "description": row["text"].format(
                    trial=trial, a_month=printed(amount / row["months"])
                ),
                "amount": amount,
                "billing_type": "recurring" if row["interval"] else "one_time",
                "interval": row["interval"],
                "interval_count": row["interval_count"],
                "trial_period_days": trial_days,
                "payment_methods": ["pix", "credit_card", "boleto"],
                "features": [*features[: row["features"]], *row["more"]],
            }

    # -- projects

    def project(self) -> Body:
        """A ProjectCreate."""
        return self.membership().project

    def membership(self, slug: str = "", *, has_trial: bool | None = None) -> Membership:
        """A project with all that is sold in it: one of the catalogue by its slug, or any.

        Raises KeyError for an unknown slug.
        """
        niche, project = offered()[slug or self.random_element(tuple(offered()))]
        slug = project["slug"]
        if has_trial is None:
            has_trial = self.generator.random.random() < table("prices")["trial_share"]
        plans = list(self._plans(niche, has_trial=has_trial))
        products = []
        for number, product in enumerate(project["products"], start=1):
            words = niche | {"slug": slug, "number": number, "code": slug.upper()}
            products.append(product | filled(table("niches")["product"], words))
        bumps = [(bump["title"], bump["price"]) for bump in niche["bumps"]]
        return Membership(self._project(niche, project), plans, products, bumps)

    def _project(self, niche: Body, project: Body) -> Body:
        random = self.generator.random
        drawn = {}
        for name in ("visibility", "release", "reminder_days"):
            drawn[name] = pick(random, "habits", name)
        drawn["owner"] = self.generator.format("surname")
        drawn["slogan"] = self.slogan()
        drawn["source"] = pick(random, "habits", "sources_of_projects")
        drawn["hashtag"] = "".join(word[0].upper() + word[1:] for word in project["name"].split())
        has_course = "course" in [product["type"] for product in project["products"]]
        drawn["certificate"] = str(has_course).lower()
        made: Body = filled(table("niches")["project"], niche | project | drawn)
        return {name: project[name] for name in ("name", "description", "long_description")} | made

    def slogan(self) -> str:
        """One of Faker's catch phrases that reads well and promises no money."""
        barred = table("niches")["not_in_slogans"]
        while True:
            slogan = str(self.generator.format("catch_phrase"))
            if not any(words in slogan for words in barred):
                return slogan


@cache
def offered() -> dict[str, tuple[Body, Body]]:
    """The projects of the catalogue by their slugs, each with its niche."""
    found = {}
    for niche in table("niches")["niches"]:
        for project in niche["projects"]:
            found[project["slug"]] = niche, project
    return found


def filled(template: Any, words: Body) -> Any:
    """A template with words in place of their names in braces."""
    if isinstance(template, dict):
        return {name: filled(value, words) for name, value in template.items()}
    return template.format(**words)


def printed(amount: float) -> str:
    """As Brazilians print an amount: 1234.56 -> "R$ 1.234,56"."""
    return "R$ " + f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))
