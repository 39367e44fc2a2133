"""Ids of records that exist, put where schemathesis made up ids that nothing has."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import httpx2

Plan = dict[str, Any]
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch

# Parameter or body member -> the list that knows its values, where in the answer it stands, the
# member of an entry.
_LISTS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "apiKeyId": ("/api-keys", ("api_keys",), "id"),
    "publicKey": ("/api-keys?is_active=true", ("api_keys",), "public_key"),
    "customerId": ("/v2/customers", ("customers",), "id"),
    "orderId": ("/v2/orders", ("orders",), "id"),
    "subscriptionId": ("/v2/subscriptions", ("subscriptions",), "id"),
    "projectId": ("/v2/projects", ("data", "projects"), "id"),
    "planId": ("/v2/plans", ("plans",), "id"),
    "productId": ("/v2/products", ("products",), "id"),
    "webhookId": ("/v2/webhooks", ("webhooks",), "id"),
    "logId": ("/v2/webhooks/logs", ("logs",), "id"),
}


def _is_never(value: Any) -> bool:
    return False


@dataclass(slots=True)
class Known:
    """What exists when the run begins. Knows nothing, and changes nothing, until it has learned.

    `is_real` tells ids that a server has answered with since: those are left as they are.
    """

    ids: dict[str, list[str]] = field(default_factory=dict)
    is_real: Callable[[Any], bool] = _is_never
    sellable: list[Plan] = field(default_factory=list)

    def learn(self, base: str, token: str) -> None:
        """Ask the lists of the server at `base`."""
        headers = {"Authorization": f"Bearer {token}"}
        with httpx2.Client(base_url=base, headers=headers, timeout=30) as api:
            for name, (path, members, member) in _LISTS.items():
                self.ids[name] = [entry[member] for entry in _entries(api, path, members)]
            projects = {
                p["id"] for p in _entries(api, "/v2/projects?status=active", ("data", "projects"))
            }
            plans = _entries(api, "/v2/plans?status=active", ("plans",))
        self.sellable = [plan for plan in plans if plan["projectId"] in projects]

    def aim_path(self, parameters: Any, salt: str = "", *, every: bool = False) -> Any:
        """Path parameters, most of the made-up ids replaced, or every one."""
        if not isinstance(parameters, Mapping):
            return parameters
        return {
            name: self._aim(name, value, salt, every=every) for name, value in parameters.items()
        }

    def aim_body(self, body: Any) -> Any:
        """A body, most of the made-up references replaced; project and plan of one order
        belong together.
        """
        if not isinstance(body, dict):
            return body
        salt = repr(body)
        aimed = {name: self._aim(name, value, salt) for name, value in body.items()}
        pair = body.get("planId"), body.get("projectId")
        if all(map(_is_made_up, pair)) and not any(map(self.is_real, pair)):
            method = body.get("paymentMethod", "pix")
            fitting = [plan for plan in self.sellable if method in plan["payment_methods"]]
            number = crc32((body["planId"] + salt).encode("utf-8", "replace"))
            if fitting and number % 8:
                plan = fitting[number // 8 % len(fitting)]
                aimed |= {"projectId": plan["projectId"], "planId": plan["id"]}
        return aimed if aimed != body else body

    def aim_query(self, operation: str, query: Any) -> Any:
        """A query of analytics that names a project: its link leads on to that."""
        named = self.ids.get("projectId")
        if operation != "getAnalytics" or not named or (query or {}).get("projectId"):
            return query
        return {**(query or {}), "projectId": named[0]}

    def _aim(self, name: str, value: Any, salt: str, *, every: bool = False) -> Any:
        ids = self.ids.get(name)
        is_made_up = _is_made_up(value) or (name == "publicKey" and _is_public_key(value))
        if not ids or not is_made_up or self.is_real(value):
            return value
        number = crc32((value + salt).encode("utf-8", "replace"))
        # One in eight stays as it is, for the 404; of public keys schemathesis tries too few to
        # spare one.
        return ids[number // 8 % len(ids)] if number % 8 or every or name == "publicKey" else value


def _is_made_up(value: Any) -> bool:
    return isinstance(value, str) and _UUID(value) is not None


def _is_public_key(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("pk_")


def _entries(api: httpx2.Client, path: str, members: tuple[str, ...]) -> list[Any]:
    found: Any = api.get(f"{path}{'&' if '?' in path else '?'}limit=100").raise_for_status().json()
    for member in members:
        found = found[member]
    assert isinstance(found, list)
    return found
