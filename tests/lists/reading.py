"""The lists of a live world: what their contract lets one ask, all of their records, and the
answers to queries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import httpx2

from ..support.make import done, typed
from .filters import Json
from .oracle import SHAPING, Query, answer, is_empty, is_range

MOST = 100


@dataclass(frozen=True)
class Listing:
    """A list operation as the served contract has it; a path parameter is filled in."""

    operation: str
    path: str
    parameters: Mapping[str, Json]

    @cached_property
    def filters(self) -> list[str]:
        """The parameters that compare one member of a record."""
        return [name for name in self.parameters if name not in SHAPING and not is_range(name)]

    @cached_property
    def ranges(self) -> list[str]:
        """The parameters that are one end of a range."""
        return [name for name in self.parameters if is_range(name)]

    @cached_property
    def sorts(self) -> list[str]:
        """The sort orders, each in both directions."""
        return list(self.parameters["sort"]["enum"])


class Reader:
    """Reads lists over HTTP.

    Records are read once; where a list does not show what it filters by, it is added.
    """

    def __init__(self, api: httpx2.Client, control: httpx2.Client) -> None:
        self.api = api
        self.control = control
        self._contract: Json = done(api.get("/openapi.json"))
        self._known: dict[str, list[Json]] = {}

    # -- the contract

    @cached_property
    def listings(self) -> dict[str, Listing]:
        """Every list operation of the API: what is answered a page at a time."""
        found = {}
        for path, item in self._contract["paths"].items():
            if "get" not in item:
                continue
            parameters = [self._resolved(entry) for entry in item["get"].get("parameters", ())]
            asked = {
                entry["name"]: self._resolved(entry["schema"])
                for entry in parameters
                if entry["in"] == "query"
            }
            if {"page", "limit"} <= asked.keys():
                operation = item["get"]["operationId"]
                found[operation] = Listing(operation, path, asked)
        return found

    def _resolved(self, entry: Json) -> Json:
        while "$ref" in entry:
            target: Any = self._contract
            for part in entry["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            entry = target
        return entry

    # -- the records

    def records(self, operation: str) -> list[Json]:
        """All records of a list, with what the filters ask about."""
        if operation not in self._known:
            self._known[operation] = self._whole(operation)
        return self._known[operation]

    def _whole(self, operation: str) -> list[Json]:
        if operation == "listLogsForWebhook":
            return [
                log for log in self.records("listWebhookLogs") if log["webhookId"] == self.busiest
            ]
        found = self.pages(operation, {})
        if operation == "listOrders":
            paid = "paid_at"
            return [
                each | self._hidden(each["id"]) | {paid: each["last_transaction"].get(paid)}
                for each in found
            ]
        if operation == "listSubscriptions":
            people = {each["id"]: each for each in self.records("listCustomers")}
            return [
                held | {"orderIds": self._orders_of(held), "searched": people[held["customerId"]]}
                for held in found
            ]
        return found

    def _hidden(self, order: str) -> Json:
        facts = done(self.control.get(f"/orders/{order}"))
        return {
            name: facts[name]
            for name in ("projectId", "planId", "customerId", "subscriptionId", "metadata")
        }

    def _orders_of(self, subscription: Json) -> list[str]:
        orders = self.records("listOrders")
        renewals = [
            order["id"] for order in orders if order["subscriptionId"] == subscription["id"]
        ]
        return sorted({subscription["orderId"], subscription["lastOrderId"], *renewals})

    @cached_property
    def busiest(self) -> str:
        """The webhook with the most deliveries, among those that still exist."""
        logs = [log["webhookId"] for log in self.records("listWebhookLogs")]
        webhooks: list[str] = [webhook["id"] for webhook in self.records("listWebhooks")]
        return max(webhooks, key=logs.count)

    # -- questions and answers

    def get(self, operation: str, query: Query) -> tuple[list[Json], Json]:
        """One page: its records and where it stands."""
        path = self.listings[operation].path
        if "{webhookId}" in path:
            path = path.replace("{webhookId}", self.busiest)
        response = self.api.get(path, params=dict(query))
        body = done(response)
        warned = response.headers.get("x-sandbox-warnings")
        assert warned == ("empty_range" if is_empty(query) else None), warned
        body = body.get("data", body)
        (member,) = [name for name, value in body.items() if isinstance(value, list)]
        return body[member], body["pagination"]

    def pages(self, operation: str, query: Query) -> list[Json]:
        """The records of all pages."""
        found = []
        number = 1
        while True:
            rows, pagination = self.get(
                operation, {"limit": str(MOST), **query, "page": str(number)}
            )
            found += rows
            if not pagination["has_next"]:
                return found
            number += 1

    def told(self, operation: str, query: Query) -> Json:
        """The ids on a page and where it stands, as the server has it."""
        rows, pagination = self.get(operation, query)
        return {"asked": dict(query), "ids": [row["id"] for row in rows], "pagination": pagination}

    def hold(self, operation: str, query: Query) -> int:
        """Hold one answer to the reading of all records; answers how many of them it takes in."""
        expected = answer(operation, self.records(operation), query)
        assert expected == self.told(operation, query)
        return typed(int, expected["pagination"]["total"])
