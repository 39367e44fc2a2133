"""A busy world of the tests' own: the default scenario, and beside it what a seed seldom has, ties
above all.
"""

import itertools
from typing import Any

import httpx2

from ..support.make import (
    Json,
    created,
    customer_body,
    done,
    fresh_cpf,
    make_order,
    make_plan,
)

NOWHERE = "http://127.0.0.1:9/hook"
ROUNDS = 3
_TYPES = ("course", "ebook", "community", "event", "mentorship", "other")
_STATES = (
    ("draft", "private"),
    ("active", "public"),
    ("suspended", "unlisted"),
    ("archived", "public"),
)
_OUTCOMES = ("pay", "fail", "expire", "cancel", "refund", "dispute", "fail", None)
_METHODS = ("pix", "credit_card", "boleto")


class Builder:
    """Fills a world over HTTP.

    What one round makes has one instant; rounds are a minute and a half apart.
    """

    def __init__(self, api: httpx2.Client, control: httpx2.Client, sink: str) -> None:
        self._api = api
        self._control = control
        self._sink = sink
        self._serial = itertools.count(1)

    def fill(self) -> None:
        """All rounds, and the time after each."""
        for number in range(ROUNDS):
            self._round(number)
            done(self._control.post("/clock/advance", json={"seconds": 91.007}))

    def _post(self, path: str, **body: Any) -> Json:
        return created(self._api.post(path, json=body))

    def _round(self, number: int) -> None:
        projects = [self._project(number, *state) for state in _STATES]
        shop = self._post("/v2/projects", name=f"Loja de ação {number}", status="active")["data"][
            "project"
        ]["id"]
        _, busy, *_, closing = self._webhooks(number, shop)
        plans = self._plans(shop)
        self._products(shop, plans)
        self._customers()
        self._keys(number)
        self._orders(plans)
        self._moves(projects)
        self._fail(busy)
        # What still waits for a webhook is canceled when it is switched off.
        done(self._api.put(f"/v2/webhooks/{closing}", json={"is_active": False}))

    def _project(self, number: int, status: str, visibility: str) -> Json:
        # Names that differ in accents alone are different names, and the same to a search and a
        # sort.
        names = ("Clube da Árvore", "Clube da Arvore", "CLUBE DA ÃRVORE")
        name = f"{names[number]} {status}"
        first = "draft" if status == "draft" else "active"
        body = {
            "name": name,
            "status": first,
            "visibility": visibility,
            "description": f"É {visibility}, São João",
        }
        project: Json = self._post("/v2/projects", **body)["data"]["project"]
        return {"id": project["id"], "to": status}

    def _moves(self, projects: list[Json]) -> None:
        for project in projects:
            if project["to"] in ("suspended", "archived"):
                path = f"/v2/projects/{project['id']}/status"
                done(self._api.patch(path, json={"status": project["to"]}))

    def _plans(self, project: str) -> list[Json]:
        methods = {"payment_methods": list(_METHODS)}
        terms: list[Json] = [
            {"name": "Mensal", "amount": 30, "interval": "month", **methods},
            {"name": "Diário", "amount": 1, "interval": "day", **methods},
            {"name": "Semanal", "amount": 7, "interval": "week", **methods},
            {"name": "Teste grátis", "amount": 30, "trial_period_days": 3, **methods},
            {"name": "Avulso", "amount": 30, "billing_type": "one_time", **methods},
            {
                "name": "Ação",
                "amount": 120,
                "interval": "year",
                "description": "À moda antiga",
                **methods,
            },
            {
                "name": "Acao",
                "amount": 120,
                "interval": "month",
                "interval_count": 12,
                "status": "inactive",
            },
        ]
        return [make_plan(self._api, project, **term) for term in terms]

    def _products(self, project: str, plans: list[Json]) -> None:
        for number, kind in enumerate(_TYPES):
            unlocking = [plan["id"] for plan in plans[: number % 3]]
            name = ("Violão", "violao", "Bônus")[number % 3]
            status = ("active", "draft", "archived")[number % 3]
            described = None if number % 2 else f"Aula nº {number} de VIOLÃO"
            body = {
                "name": name,
                "type": kind,
                "status": status,
                "planIds": unlocking,
                "description": described,
            }
            self._post("/v2/products", projectId=project, **body)

    def _customers(self) -> None:
        for name in ("Zélia Ávila", "zelia avila", "ZÉLIA ÁVILA", "Íris D'Ávila"):
            self._post("/v2/customers", **customer_body(name=name))
        passport = f"ZZ{next(self._serial):06d}"
        self._post(
            "/v2/customers",
            **customer_body(name="Zoë Müller", document=passport, email="Family@Example.com"),
        )

    def _keys(self, number: int) -> None:
        for name in ("Integração", "integracao", f"Relatório {number}"):
            key = self._post(
                "/api-keys", name=name, scopes=["orders:read"], description=f"Nº {number}"
            )["api_key"]
            if number == 1:
                done(self._api.put(f"/api-keys/{key['id']}", json={"is_active": False}))

    def _fail(self, webhook: str) -> None:
        """Some deliveries of a webhook are repeated where nobody listens."""
        path = f"/v2/webhooks/{webhook}"
        url = done(self._api.get(path))["webhook"]["url"]
        done(self._api.put(path, json={"url": f"{NOWHERE}/{webhook}"}))
        for log in done(self._api.get(f"{path}/logs", params={"limit": 5}))["logs"]:
            done(self._api.post(f"/v2/webhooks/logs/{log['id']}/retry"))
        done(self._api.put(path, json={"url": url}))

    def _webhooks(self, number: int, project: str) -> list[str]:
        """One attempt each: delivered at the sink, failed where nobody listens, which is the last
        of them.
        """
        made = []
        asked: list[tuple[str, list[str], Json]] = [
            (self._sink, ["*"], {"projectId": project}),
            (self._sink, ["order.*", "webhook.test"], {"is_active": number != 1}),
            (self._sink, ["subscription.*"], {"projectId": project}),
            (NOWHERE, ["order.created", "project.archived"], {}),
        ]
        for place, (url, events, more) in enumerate(asked):
            body = {"url": f"{url}/lists/{number}/{place}", "events": events, **more}
            made.append(self._post("/v2/webhooks", **body)["webhook"]["id"])
            done(self._api.post(f"/v2/webhooks/{made[-1]}/test"))
        return made

    def _orders(self, plans: list[Json]) -> None:
        on_sale = plans[:-1]
        for plan, outcome in itertools.product(on_sale, _OUTCOMES):
            number = next(self._serial)
            document = fresh_cpf()
            # nobody disputes a boleto
            method = _METHODS[number % (2 if outcome == "dispute" else 3)]
            local = "fill_never" if method == "credit_card" else "caio"  # else a card pays at once
            buyer = {
                "name": "Caio Prado",
                "email": f"{local}.{document}@example.com",
                "document": document,
            }
            total = plan["amount"]
            items = [{"description": plan["name"], "quantity": 1, "amount": total}]
            body = {"totalAmount": total, "items": items, "customer": buyer}
            if number % 3 == 0:
                order = make_order(self._api, plan, **body)
            else:
                body |= {"projectId": plan["projectId"], "planId": plan["id"]}
                order = self._post("/v2/orders", paymentMethod=method, **body)
            for verb in (
                ("pay", outcome)
                if outcome in ("refund", "dispute")
                else (outcome,)
                if outcome
                else ()
            ):
                # Every other refund gives back a part alone.
                part = {"amount": 0.5} if verb == "refund" and number % 2 else None
                done(self._control.post(f"/orders/{order['id']}/{verb}", json=part))
