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
    token = forge.signed(settings, sandbox=shop.sandbox, merchant_id=shop.merchant_id, exp=1_700_000_000)
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
        "Send `Authorization: Bearer …` with a token or key of `GET /_sandbox/credentials`.",
        lambda shop, operation: with_token(shop, operation, None),
        at="createCustomer",
    ),
    Row(
        "invalid_token",
        401,
        "Get a new token from `GET /_sandbox/credentials` of the same sandbox. After a restart with another seed or "
        "secret the old ones are invalid.",
        lambda shop, operation: with_token(shop, operation, "eyJhbGciOiJIUzI1NiJ9.e30."),
        at="createCustomer",
        is_modelled=True,
    ),
    Row(
        "token_expired",
        401,
        "Get a new token from `GET /_sandbox/credentials`.",
        late,
        at="createCustomer",
    ),
    Row(
        "api_key_inactive",
        401,
        "Set `is_active` of the key to true, or use another key.",
        inactive,
        at="createCustomer",
        is_modelled=True,
    ),
    Row(
        "api_key_expired",
        401,
        "Use a key whose `expires_at` has not passed.",
        expired,
        at="createCustomer",
        is_modelled=True,
    ),
    Row(
        "api_key_expired",
        409,
        "Send a later `expires_at` with the request that activates the key.",
        activated,
    ),
    Row(
        "insufficient_scope",
        403,
        "`details` names the scope. Create a key with it, or use the token of `GET /_sandbox/credentials`, which has "
        "all.",
        one_scope_short,
        at="createPixOrder",
        is_modelled=True,
    ),
    Row(
        "jwt_required",
        403,
        "Send the `jwt` of `GET /_sandbox/credentials` instead of an API key.",
        with_key,
        at="listApiKeys",
        is_modelled=True,
    ),
    Row(
        "scope_escalation",
        403,
        "Give the key only scopes that your own credential has.",
        escalating,
        at="createApiKey",
    ),
    Row(
        "ip_not_allowed",
        403,
        "Call from an address of the key's `allowed_ips`, or add yours.",
        lambda shop, operation: with_key(shop, operation, allowed_ips=[ELSEWHERE, "2001:db8::/32"]),
    ),
    Row(
        "project_not_allowed",
        403,
        "Use a project of the key's `allowed_projects`, or a key without that list.",
        of_another_project,
        at="getProject",
        is_modelled=True,
    ),
    Row(
        "host_not_allowed",
        403,
        "Call the server as `localhost` or `127.0.0.1`, or start it with `--allow-host`.",
        send("GET", "/v2/plans", headers={"Host": "shop.example.com"}),
        is_anywhere=True,
    ),
    Row(
        "delivery_not_allowed",
        403,
        "Give a webhook the address of your application or of an inbox, not one of the API.",
        send("GET", "/v2/plans", headers={"webhook-id": "evt_1"}),
        is_anywhere=True,
    ),
    Row(
        "admin_key_required",
        403,
        "Send `X-Sandbox-Admin-Key`, or the sandbox's key as `X-Sandbox-Control-Key`. A server that other machines can "
        "reach needs `--admin-key`.",
        control=lambda shop: shop.control.post("/reset", headers={"Origin": "https://elsewhere.example"}),
    ),
]
