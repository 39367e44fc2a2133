"""Refusals of who asks: no credential, one that is no longer good, or one that may not do this."""

from stub_server.contract.document import Operation

from .. import forge
from ..estate import ELSEWHERE, SCOPES, Estate, client
from ..make import make_project
from ..requests import ask
from .row import Answer, Row, send


def with_token(shop: Estate, operation: Operation, token: str | None) -> Answer:
    """Ask with another credential, or with none."""
    with client(shop.live, shop.sandbox, token) as stranger:
        return ask(stranger, operation, shop.ids)


def late(shop: Estate, operation: Operation) -> Answer:
    """A token of the merchant that was valid until 2023."""
    settings = shop.live.settings
    token = forge.signed(
        settings, sandbox=shop.sandbox, merchant_id=shop.merchant_id, exp=1_700_000_000
    )
    return with_token(shop, operation, token)


def inactive(shop: Estate, operation: Operation) -> Answer:
    """A key that was switched off."""
    key = shop.key()
    assert shop.api.put(f"/api-keys/{key['id']}", json={"is_active": False}).status_code == 200
    return with_token(shop, operation, key["private_key"])


def expired(shop: Estate, operation: Operation) -> Answer:
    """A key whose end has passed."""
    return with_token(shop, operation, shop.key(expires_at="2026-01-01T00:00:00Z")["private_key"])


def activated(shop: Estate, operation: Operation) -> Answer:
    """A key whose end has passed is made active."""
    key = shop.key(expires_at="2026-01-01T00:00:00Z")
    return shop.api.put(f"/api-keys/{key['id']}", json={"is_active": True})


def one_scope_short(shop: Estate, operation: Operation) -> Answer:
    """A token with every scope but the operation's."""
    with shop.with_scopes(*(scope for scope in SCOPES if scope not in operation.scopes)) as short:
        return ask(short, operation, shop.ids)


def escalating(shop: Estate, operation: Operation) -> Answer:
    """A key is given a scope that its giver has not."""
    with shop.with_scopes("api_keys:write") as clerk:
        return ask(clerk, operation, shop.ids, json={"name": "Chave", "scopes": ["orders:read"]})


def with_key(shop: Estate, operation: Operation, **changes: object) -> Answer:
    """Ask with a new API key."""
    with shop.with_key(**changes) as key:
        return ask(key, operation, shop.ids)


def of_another_project(shop: Estate, operation: Operation) -> Answer:
    """A key that is restricted to another project of the same merchant."""
    return with_key(shop, operation, allowed_projects=[make_project(shop.api)["id"]])


CREDENTIALS = [
    Row(
        "missing_credentials",
        401,
        lambda shop, operation: with_token(shop, operation, None),
        at="createCustomer",
    ),
    Row(
        "invalid_token",
        401,
        lambda shop, operation: with_token(shop, operation, "eyJhbGciOiJIUzI1NiJ9.e30."),
        at="createCustomer",
        is_modelled=True,
    ),
    Row(
        "token_expired",
        401,
        late,
        at="createCustomer",
    ),
    Row(
        "api_key_inactive",
        401,
        inactive,
        at="createCustomer",
        is_modelled=True,
    ),
    Row(
        "api_key_expired",
        401,
        expired,
        at="createCustomer",
        is_modelled=True,
    ),
    Row(
        "api_key_expired",
        409,
        activated,
    ),
    Row(
        "insufficient_scope",
        403,
        one_scope_short,
        at="createPixOrder",
        is_modelled=True,
    ),
    Row(
        "jwt_required",
        403,
        with_key,
        at="listApiKeys",
        is_modelled=True,
    ),
    Row(
        "scope_escalation",
        403,
        escalating,
        at="createApiKey",
    ),
    Row(
        "ip_not_allowed",
        403,
        lambda shop, operation: with_key(shop, operation, allowed_ips=[ELSEWHERE, "2001:db8::/32"]),
    ),
    Row(
        "project_not_allowed",
        403,
        of_another_project,
        at="getProject",
        is_modelled=True,
    ),
    Row(
        "host_not_allowed",
        403,
        send("GET", "/v2/plans", headers={"Host": "shop.example.com"}),
        is_anywhere=True,
    ),
    Row(
        "delivery_not_allowed",
        403,
        send("GET", "/v2/plans", headers={"webhook-id": "evt_1"}),
        is_anywhere=True,
    ),
    Row(
        "admin_key_required",
        403,
        control=lambda shop: shop.control.post(
            "/reset", headers={"Origin": "https://elsewhere.example"}
        ),
    ),
]
