"""Nobody makes a key do more than he may himself: neither by its scopes nor by changing what holds
it back.
"""

from typing import Any

import httpx2
import pytest

from ..support.estate import Estate
from ..support.make import done
from .steps import refused

CLERK = ("api_keys:write", "api_keys:read", "orders:read")
HELD: dict[str, Any] = {
    "scopes": ["orders:read", "orders:write"],
    # a network may be named by any address in it
    "allowed_ips": ["203.0.113.9/24", "2001:db8::/32"],
    "expires_at": "2027-06-01T00:00:00Z",
}
CHANGING: list[dict[str, Any]] = [
    {"allowed_ips": []},
    {"allowed_ips": ["203.0.113.0/24", "198.51.100.7"]},
    {"allowed_ips": ["203.0.113.7/28"]},
    {"allowed_projects": []},
    {"expires_at": None},
    {"expires_at": "2027-05-01T00:00:00Z"},
    {"is_active": True},
]
HARMLESS: list[dict[str, Any]] = [
    {"name": "Outro nome"},
    {"is_active": False},
    {"scopes": ["orders:read"]},
]


def held(shop: Estate, **changes: Any) -> str:
    """A key with everything that holds one back, switched off."""
    ident: str = shop.key(**HELD | {"allowed_projects": [shop.ids["projectId"]]} | changes)["id"]
    done(shop.api.put(f"/api-keys/{ident}", json={"is_active": False}))
    return ident


def shown(client: httpx2.Client, ident: str) -> Any:
    """The key in the list."""
    return next(
        key for key in done(client.get("/api-keys?limit=100"))["api_keys"] if key["id"] == ident
    )


@pytest.mark.promise("no-scope-escalation")
@pytest.mark.parametrize("change", CHANGING, ids=str)
def test_with_fewer_scopes_than_a_key_none_of_its_restrictions_is_changed(
    shop: Estate, change: dict[str, Any]
) -> None:
    """The key is unchanged; whoever holds its scopes may lift them."""
    ident = held(shop)
    before = shown(shop.api, ident)
    with shop.with_scopes(*CLERK) as clerk:
        answer = clerk.put(f"/api-keys/{ident}", json=change)
        assert dict.fromkeys(change, "scope_escalation") == refused(answer, 403, "scope_escalation")
        assert "orders:write" in answer.json()["message"]
        assert before == shown(clerk, ident)
    with shop.with_scopes(*CLERK, "orders:write") as boss:
        done(boss.put(f"/api-keys/{ident}", json=change))
        assert before != shown(boss, ident)


@pytest.mark.parametrize("change", HARMLESS, ids=str)
def test_who_holds_fewer_scopes_may_rename_a_key_and_switch_it_off(
    shop: Estate, change: dict[str, Any]
) -> None:
    ident = held(shop)
    with shop.with_scopes(*CLERK) as clerk:
        done(clerk.put(f"/api-keys/{ident}", json=change))


def test_a_key_of_no_more_than_ones_own_scopes_is_changed_at_will(shop: Estate) -> None:
    """Also by taking the scopes away that one does not hold, in the same request."""
    ident = held(shop, scopes=["orders:read"])
    everything: dict[str, Any] = {
        "allowed_ips": [],
        "allowed_projects": [],
        "expires_at": None,
        "is_active": True,
    }
    wider = held(shop)
    with shop.with_scopes(*CLERK) as clerk:
        done(clerk.put(f"/api-keys/{ident}", json=everything))
        done(clerk.put(f"/api-keys/{wider}", json=everything | {"scopes": ["orders:read"]}))
        answer = clerk.put(f"/api-keys/{wider}", json={"scopes": ["orders:read", "orders:write"]})
        refused(answer, 403, "scope_escalation")
