"""Blueprints of projects: names, texts, settings, plans with prices, and products of Brazilian memberships."""

from collections.abc import Iterator
from itertools import zip_longest
from random import Random
from typing import NamedTuple

from faker import Faker

from ..kernel.money import cents, reais
from ..kernel.record import Body
from .catalogue import Catalogue, plain_ascii
from .draw import Item, Weighted, pick, sample

SOURCES = ("instagram", "google", "youtube", "facebook", "indicacao")
TRIAL = " {} dias a mais no primeiro mês."
#: Which plans a project has, with the share of projects.
MENUS = Weighted(
    (
        (("Mensal", "Anual"), 40),
        (("Mensal", "Trimestral", "Anual"), 30),
        (("Mensal", "Anual", "Vitalício"), 15),
        (("Mensal", "Trimestral", "Anual", "Vitalício"), 15),
    )
)
#: Plan name -> interval, interval_count, period of the price table, share of the project's sales.
PLANS: dict[str, tuple[str | None, int | None, str, float]] = {
    "Mensal": ("month", 1, "monthly", 55.0),
    "Trimestral": ("month", 3, "quarterly", 7.0),
    "Anual": ("year", 1, "yearly", 35.0),
    "Vitalício": (None, None, "lifetime", 3.0),
}


class Blueprint(NamedTuple):
    """A project to seed.

    `fields` are a ProjectCreate without status. `plans` are PlanCreates without projectId, with their shares of sales;
    `products` are ProductCreates without projectId and planIds, with the names of the plans that unlock them. `bumps`
    are (title, reais) of extras offered at checkout.
    """

    slug: str
    fields: Body
    plans: list[tuple[Body, float]]
    products: list[tuple[Body, list[str]]]
    bumps: list[tuple[str, float]]


class Blueprints:
    """Draws the projects of a catalogue. `faker` gives the slogans and is used while building only."""

    def __init__(self, catalogue: Catalogue, faker: Faker) -> None:
        self._niches, self._prices = catalogue.niches["niches"], catalogue.prices
        self._edition: str = catalogue.niches["edition"]
        self._owners = Weighted((name, weight) for name, (weight, _, _) in catalogue.names["surnames"].items())
        excluded = catalogue.niches["not_in_slogans"]
        phrases = dict.fromkeys(faker.catch_phrase() for _ in range(400))
        self._slogans = [text for text in phrases if not any(words in text for words in excluded)]

    def draw(self, rng: Random, count: int) -> Iterator[Blueprint]:
        """`count` projects with different names and slugs, spread over the niches: each niche has its turn."""
        shuffled = _shuffled(rng, self._niches)
        niches = [[(niche, project) for project in _shuffled(rng, niche["projects"])] for niche in shuffled]
        queue = [pair for turn in zip_longest(*niches) for pair in turn if pair is not None]
        for position in range(count):
            niche, project = queue[position % len(queue)]
            edition = position // len(queue) + 1
            name, slug = project["name"], project["slug"]
            if edition > 1:
                name = f"{name}: {self._edition} {edition}"
                slug = f"{slug}-{plain_ascii(self._edition)}-{edition}"
            first = position == 0  # some project has a trial, whatever the seed
            yield self._blueprint(rng, niche, project, name, slug, has_trial=first)

    def find(self, rng: Random, slug: str) -> Blueprint | None:
        """The catalogue's project with this slug, or None."""
        for niche in self._niches:
            for project in niche["projects"]:
                if project["slug"] == slug:
                    return self._blueprint(rng, niche, project, project["name"], slug)
        return None

    def _blueprint(
        self, rng: Random, niche: Body, project: Body, name: str, slug: str, *, has_trial: bool = False
    ) -> Blueprint:
        plans = _plans(rng, self._prices, niche, has_trial=has_trial)
        slogan, owner = pick(rng, self._slogans), self._owners.draw(rng)
        affiliates = rng.random() < 0.4
        hashtag = "".join(word[0].upper() + word[1:] for word in project["name"].split())
        fields: Body = {
            "name": name,
            "description": project["description"],
            "long_description": project["long_description"],
            "logo_url": f"https://assets.example.com/{slug}/logo.png",
            "cover_image": f"https://assets.example.com/{slug}/capa.jpg",
            "website_url": f"https://www.example.com/{slug}",
            "visibility": Weighted((("public", 85), ("unlisted", 15))).draw(rng),
            "business_settings": {
                "legal_name": f"{owner} Educação Digital Ltda.",
                "support_email": f"suporte.{slug}@example.com",
                "timezone": "America/Sao_Paulo",
                "refund_days": "7",
            },
            "marketing_settings": {
                "slogan": slogan,
                "hashtag": f"#{hashtag}",
                "main_source": pick(rng, SOURCES),
                "affiliates": "true" if affiliates else "false",
                **({"affiliate_percent": pick(rng, ("20", "30", "40", "50"))} if affiliates else {}),
            },
            "content_settings": {
                "language": "pt-BR",
                "release": pick(rng, ("immediate", "weekly", "weekly")),
                "certificate": "true" if any(p["type"] == "course" for p in project["products"]) else "false",
                "theme_color": f"#{niche['color']}",
            },
            "notification_settings": {
                "sender_name": f"Equipe {project['name']}",
                "welcome_email": "true",
                "renewal_reminder_days": pick(rng, ("1", "3", "3", "5")),
            },
            "metadata": {"niche": niche["key"], "audience": niche["audience"]},
        }
        plan_names = [plan["name"] for plan, _ in plans]
        numbered = enumerate(project["products"], start=1)
        products = [_product(niche, product, slug, number, plan_names) for number, product in numbered]
        return Blueprint(slug, fields, plans, products, [(bump["title"], bump["price"]) for bump in niche["bumps"]])


def _shuffled(rng: Random, items: list[Item]) -> list[Item]:
    # Not random.shuffle, as Python may change how it uses the generator.
    return sorted(items, key=lambda item: rng.random())


def _product(niche: Body, product: Body, slug: str, number: int, plans: list[str]) -> tuple[Body, list[str]]:
    # Shorter initials are the same for Contas do MEI and Churrasco de Mestre.
    first, *others = slug.split("-")
    initials = (first[:3] + "".join(word if word.isdigit() else word[0] for word in others)).upper()
    fields = {
        "name": product["name"],
        "description": product["description"],
        "type": product["type"],
        "image_url": f"https://assets.example.com/{slug}/produto-{number}.jpg",
        "access_url": f"https://membros.example.com/{slug}/{number}",
        "sku": f"{initials}-{number:02d}",
        "metadata": {"niche": niche["key"]},
    }
    # Mentorship comes with the more expensive plans only, everything else with all.
    return fields, plans[1:] if product["type"] == "mentorship" else plans


def _plans(rng: Random, prices: Body, niche: Body, *, has_trial: bool) -> list[tuple[Body, float]]:
    """The plans of one project, cheapest first; the monthly one may have a trial, or `has_trial` for sure."""
    limit = cents(niche["monthly_up_to"])
    monthly = Weighted((price, share) for price, share in points(prices, "monthly") if price <= limit).draw(rng)
    menu = MENUS.draw(rng)
    features = sample(rng, niche["features"], 5)
    has_trial |= rng.random() < prices["trial_share"]
    trial_days = int(Weighted(prices["trials"].items()).draw(rng)) if has_trial else 0
    plans = []
    for name in menu:
        interval, interval_count, period, share = PLANS[name]
        price, bullets, trial = monthly, features, 0
        if period == "monthly":
            bullets, trial = features[:3], trial_days
            text = f"Acesso completo, renovado todo mês.{TRIAL.format(trial) if trial else ''} Cancele quando quiser."
        elif period == "lifetime":
            price, bullets = lifetime_price(rng, prices, monthly), [*features, "Acesso vitalício"]
            text = "Pagamento único, com acesso vitalício a todo o conteúdo."
        else:
            price = shop_price(prices, monthly * prices["multiples"][period])
            begin, months = ("Três meses", 3) if period == "quarterly" else ("Um ano", 12)
            text = f"{begin} de acesso. Sai por {printed(round(price / months))} por mês."
        fields = {
            "name": name,
            "description": text,
            "amount": reais(price),
            "billing_type": "recurring" if interval else "one_time",
            "interval": interval,
            "interval_count": interval_count,
            "trial_period_days": trial,
            "payment_methods": ["pix", "credit_card", "boleto"],
            "features": bullets,
        }
        plans.append((fields, share))
    return plans


# -- prices, in cents; those of the price table are in reais


def points(prices: Body, name: str) -> list[tuple[int, float]]:
    """The `monthly` or `lifetime` prices of the table, with their weights."""
    return [(cents(float(price)), weight) for price, weight in prices[name].items()]


def lifetime_price(rng: Random, prices: Body, monthly: int) -> int:
    """A one-time plan; never less than a year's worth of months, nor more than two and a half years' worth."""
    floor = monthly * prices["multiples"]["lifetime"]
    options = [(price, weight) for price, weight in points(prices, "lifetime") if floor <= price <= 2.5 * floor]
    return Weighted(options).draw(rng) if options else shop_price(prices, floor)


def shop_price(prices: Body, wanted: float) -> int:
    """The printed price nearest to the wanted one; a price of the ladder if one is close enough."""
    ladder = min(map(cents, prices["ladder"]), key=lambda price: abs(price - wanted))
    if abs(ladder - wanted) <= wanted * prices["ladder_pull"]:
        return ladder
    endings = prices["endings"]
    ending = next((ending for ending in endings if wanted < cents(ending["below"])), endings[-1])
    step = cents(ending["step"])
    base = int(wanted) // step
    candidates = [near * step + cents(value) for near in (base - 1, base, base + 1) for value in ending["values"]]
    return min((price for price in candidates if price > 0), key=lambda price: (abs(price - wanted), price))


def printed(price: int) -> str:
    """As Brazilians print it: 123456 -> "R$ 1.234,56"."""
    whole = f"{price // 100:,}".replace(",", ".")
    return f"R$ {whole},{price % 100:02d}"
