"""Who is let in: the challenges of 401 and 403, tokens that are not ours, and scopes one short."""

from typing import Any

import pytest

from ..support import forge
from ..support.refusal import refused, says
from ..support.shared import Shared
from ..support.wire import Door
from .conftest import door_to

REALM = 'Bearer realm="membership-sandbox"'


@pytest.mark.parametrize(
    ("header", "value", "wrong"),
    [
        ("Authorization", "sk_test_abc", "must be Bearer and a credential"),
        ("Authorization", "Basic YTpi", "must be Bearer and a credential"),
        ("Authorization", "Bearer ", "must be Bearer and a credential"),
        ("X-API-Key", "sk_test_abc", "X-API-Key"),
        ("X-Other", "sk_test_abc", ""),
    ],
)
def test_who_sends_a_credential_in_another_way_is_told_what_was_wrong(
    door: Door, header: str, value: str, wrong: str
) -> None:
    """And never the credential."""
    answer = door.ask("GET", "/v2/customers", token=None, headers=[(header, value)])
    message = refused(answer, 401, "missing_credentials")["message"]
    assert says(message, "Authorization: Bearer", wrong)
    secret = value.rpartition(" ")[2]
    assert not secret or secret not in message


@pytest.mark.parametrize(
    ("claimed", "seen"),
    [([], "127.0.0.1"), ([("X-Sandbox-Client-IP", "198.51.100.9")], "198.51.100.9"),
     ([("X-Sandbox-Client-IP", "x" * 900)], "an unknown address"), ([("X-Sandbox-Client-IP", "")], "an unknown address")],
)  # fmt: skip
def test_an_address_that_is_not_allowed_is_named_with_how_to_try_another(
    door: Door, claimed: list[tuple[str, str]], seen: str
) -> None:
    key = {"name": "Rede", "scopes": ["orders:read"], "allowed_ips": ["203.0.113.7"]}
    made = door.send("POST", "/api-keys", key).json()["api_key"]["private_key"]
    told = refused(
        door.ask("GET", "/v2/orders?limit=1", token=made, headers=claimed), 403, "ip_not_allowed"
    )["message"]
    assert says(told, seen, "allowed_ips", "X-Sandbox-Client-IP")


def tampered(token: str) -> str:
    """The same with other claims and the old signature."""
    head, _, signature = token.split(".")
    return ".".join((head, forge.unsigned().split(".")[1], signature))


def forged(token: str) -> dict[str, str]:
    """Tokens that are not ours, made from one that is."""
    return {
        "words": "abc",
        "many words": "a b c",
        "two parts": "eyJhbGciOiJIUzI1NiJ9.e30",
        "dots": "ey..",
        "not base64": "ey!.ey!.x",
        "no JSON": "eyAAAA.eyAAAA.AAAA",
        "not ASCII": "eyJ\xff.\xfe.\xfd",
        "very long": "eyJ" + "a" * 30_000,
        "tampered": tampered(token),
        "cut signature": token[:-4],
        "no signature": token.rpartition(".")[0] + ".",
        "alg none": forge.unsigned(),
        "alg None": forge.unsigned("None"),
        "alg HS256 without signature": forge.unsigned("HS256"),
        "another secret": forge.signed_otherwise(b"another secret of thirty-two bytes"),
        "an empty-ish secret": forge.signed_otherwise(b"\0" * 32),
        "RS256": forge.signed_rs256(),
        "encrypted": "eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..a.b.c",
        "unknown private key": "sk_sandbox_" + "0" * 40,
        "unknown public key": "pk_sandbox_" + "0" * 24,
        "key prefix": "sk_",
    }


def test_a_token_that_is_not_ours_is_401(door: Door) -> None:
    for what, token in forged(door.token).items():
        answer = door.ask("GET", "/v2/customers", token=token)
        body = refused(answer, 401, "invalid_token")
        assert (
            answer.header("www-authenticate")
            == f'{REALM}, error="invalid_token", error_description="{body["message"]}"'
        ), what


@pytest.mark.promise("journal")
def test_the_journal_keeps_the_claims_alone_that_tokens_of_the_server_have(shared: Shared) -> None:
    """Who knows the secret of a server on loopback filled its memory with others: 4 GB in 10 s."""
    live = shared.live
    token = forge.signed(live.settings, role="admin", rest=[[]] * 300, exp=1)
    answer = Door(live.port, "/s/surfaces", token).ask("GET", "/v2/customers")
    refused(answer, 401, "token_expired")
    ident = answer.header("x-request-id")
    found = door_to(live).ask("GET", f"/_sandbox/requests/{ident}").json()
    kept = found["request"]["caller"]["claims"]
    assert set(forge.claims()) == set(kept)


@pytest.mark.promise("journal")
def test_a_token_longer_than_any_of_the_server_is_refused(shared: Shared) -> None:
    token = forge.signed(shared.live.settings, scope="a " * 2_000)
    answer = Door(shared.live.port, "/s/surfaces", token).ask("GET", "/v2/customers")
    assert says(refused(answer, 401, "invalid_token")["message"], "longer than 4,096 characters")


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"expires_at": "2026-11-20T14:32:05.123Z"}, 401, "api_key_expired"),
        ({"expires_at": "2020-01-01T00:00:00Z", "is_active": False}, 401, "api_key_expired"),
        ({"is_active": False}, 401, "api_key_inactive"),
        ({"is_active": False, "allowed_ips": ["203.0.113.7"]}, 401, "api_key_inactive"),
        ({"allowed_ips": ["203.0.113.7"]}, 403, "ip_not_allowed"),
        ({"allowed_ips": ["203.0.113.7"], "scopes": ["plans:read"]}, 403, "ip_not_allowed"),
        ({"scopes": ["plans:read"]}, 403, "insufficient_scope"),
    ],
)
def test_a_key_is_refused_for_the_first_reason(
    door: Door, changes: dict[str, Any], status: int, code: str
) -> None:
    """Expired wins over inactive, that over the address, that over the scope."""
    made = door.send("POST", "/api-keys", {"name": "Chave", "scopes": ["orders:read"]}).json()[
        "api_key"
    ]
    assert door.ask("GET", "/v2/orders?limit=1", token=made["private_key"]).status == 200
    assert door.send("PUT", f"/api-keys/{made['id']}", changes).status == 200
    answer = door.ask("GET", "/v2/orders?limit=1", token=made["private_key"])
    refused(answer, status, code)
    assert (status == 401 or code == "insufficient_scope") == (
        answer.header("www-authenticate") is not None
    )


@pytest.mark.parametrize(
    ("allowed", "client", "status"),
    [
        ("203.0.113.0/24", "203.0.113.9", 200), ("203.0.113.0/24", "203.0.114.9", 403), ("2001:db8::/32",
        "2001:db8::5", 200),
        ("203.0.113.0/24", "::ffff:203.0.113.9", 200), ("203.0.113.0/24", "nonsense", 403), ("203.0.113.9/24",
        "203.0.113.1", 200),
    ],
)  # fmt: skip
def test_the_client_address_can_be_claimed_on_loopback(
    door: Door, allowed: str, client: str, status: int
) -> None:
    body = {"name": "Rede", "scopes": ["orders:read"], "allowed_ips": [allowed]}
    made = door.send("POST", "/api-keys", body).json()["api_key"]
    headers = [("X-Sandbox-Client-IP", client)]
    assert (
        door.ask("GET", "/v2/orders?limit=1", headers=headers, token=made["private_key"]).status
        == status
    )
