"""Who is let in: the challenges of 401 and 403, tokens that are not ours, and scopes one short."""

import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from stub_server.calls.credentials import Tokens
from stub_server.engine.sandbox import Sandbox
from stub_server.kernel.clock import wall_from

from ..support import forge
from ..support.contract import document
from ..support.live import NO_TLS, Live
from ..support.refusal import refused, says
from ..support.wire import Door

REALM = 'Bearer realm="membership-sandbox"'
OPERATIONS = document().operations
ID = "00000000-0000-4000-8000-000000000000"


def path_of(operation: str) -> str:
    """A path that reaches an operation."""
    return "/".join(ID if s.startswith("{") else s for s in OPERATIONS[operation].path.split("/"))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_asks_for_a_credential(door: Door, operation: str) -> None:
    """Without one there is nothing to call an error: the challenge has no error attribute (RFC 6750 §3.1)."""
    answer = door.ask(OPERATIONS[operation].method, path_of(operation), token=None)
    refused(answer, 401, "missing_credentials")
    assert answer.header("www-authenticate") == REALM


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        " ",
        "Basic YTpi",
        "Bearer",
        "Bearer ",
        "Bearer  \t",
        "Token abc",
        "Digest x",
        "abc",
        "bearerabc",
        "Bear er x",
    ],
)
def test_another_scheme_is_no_credential(door: Door, authorization: str) -> None:
    answer = door.ask("GET", "/v2/customers", token=None, headers=[("Authorization", authorization)])
    refused(answer, 401, "missing_credentials")
    assert answer.header("www-authenticate") == REALM


@pytest.mark.parametrize(
    ("header", "value", "wrong"),
    [
        ("Authorization", "sk_test_abc", "does not begin with Bearer"),
        ("Authorization", "eyJx.y.z", "does not begin with Bearer"),
        ("Authorization", "Basic YTpi", "begin with Bearer"),
        ("Authorization", "Token abc", "begin with Bearer"),
        ("Authorization", "", "begin with Bearer"),
        ("Authorization", "Bearer ", "nothing after Bearer"),
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
     ([("X-Sandbox-Client-IP", "x" * 900)], "x" * 45), ([("X-Sandbox-Client-IP", "")], "an unknown address")],
)  # fmt: skip
def test_an_address_that_is_not_allowed_is_named_with_how_to_try_another(
    door: Door, claimed: list[tuple[str, str]], seen: str
) -> None:
    key = {"name": "Rede", "scopes": ["orders:read"], "allowed_ips": ["203.0.113.7"]}
    made = door.send("POST", "/api-keys", key).json()["api_key"]["private_key"]
    told = refused(door.ask("GET", "/v2/orders?limit=1", token=made, headers=claimed), 403, "ip_not_allowed")["message"]
    assert says(told, seen, "allowed_ips", "X-Sandbox-Client-IP")
    tried = [("X-Sandbox-Client-IP", "203.0.113.7")]
    assert door.ask("GET", "/v2/orders?limit=1", token=made, headers=tried).status == 200


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
def test_the_scheme_is_told_in_any_case(door: Door, scheme: str) -> None:
    headers = [("Authorization", f"{scheme} {door.token}")]
    assert door.ask("GET", "/v2/customers?limit=1", token=None, headers=headers).status == 200


def tampered(token: str) -> str:
    """The same with other claims and the old signature."""
    head, _, signature = token.split(".")
    return ".".join((head, forge.unsigned().split(".")[1], signature))


FORGED: dict[str, Callable[[str], str]] = {
    "words": lambda t: "abc",
    "many words": lambda t: "a b c",
    "two parts": lambda t: "eyJhbGciOiJIUzI1NiJ9.e30",
    "dots": lambda t: "ey..",
    "not base64": lambda t: "ey!.ey!.x",
    "no JSON": lambda t: "eyAAAA.eyAAAA.AAAA",
    "not ASCII": lambda t: "eyJ\xff.\xfe.\xfd",
    "very long": lambda t: "eyJ" + "a" * 30_000,
    "tampered": tampered,
    "cut signature": lambda t: t[:-4],
    "no signature": lambda t: t.rpartition(".")[0] + ".",
    "alg none": lambda t: forge.unsigned(),
    "alg None": lambda t: forge.unsigned("None"),
    "alg HS256 without signature": lambda t: forge.unsigned("HS256"),
    "another secret": lambda t: forge.signed_otherwise(b"another secret of thirty-two bytes"),
    "an empty-ish secret": lambda t: forge.signed_otherwise(b"\0" * 32),
    "RS256": lambda t: forge.signed_rs256(),
    "encrypted": lambda t: "eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..a.b.c",
    "unknown private key": lambda t: "sk_sandbox_" + "0" * 40,
    "unknown public key": lambda t: "pk_sandbox_" + "0" * 24,
    "key prefix": lambda t: "sk_",
}


@pytest.mark.parametrize("what", FORGED)
def test_a_token_that_is_not_ours_is_401(door: Door, what: str) -> None:
    answer = door.ask("GET", "/v2/customers", token=FORGED[what](door.token))
    body = refused(answer, 401, "invalid_token")
    assert answer.header("www-authenticate") == f'{REALM}, error="invalid_token", error_description="{body["message"]}"'


@pytest.mark.parametrize("algorithm", ["HS384", "HS512"])
def test_only_hs256_serves_whatever_the_secret(live: Live, door: Door, algorithm: str) -> None:
    secret = live.settings.signing_secret(b"")
    refused(door.ask("GET", "/v2/customers", token=forge.signed_otherwise(secret, algorithm)), 401, "invalid_token")


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "elsewhere"}, {"iss": None}, {"sandbox": None}, {"sandbox": 1}, {"sub": None}, {"merchant_id": None},
        {"merchant_id": ["a"]}, {"scope": None}, {"scope": ["*"]}, {"exp": None}, {"exp": "tomorrow"},
    ],
    ids=str,
)  # fmt: skip
def test_a_token_without_its_claims_is_401(live: Live, door: Door, changes: dict[str, Any]) -> None:
    refused(door.ask("GET", "/v2/customers", token=forge.signed(live.settings, **changes)), 401, "invalid_token")


def test_an_expired_token_is_401_with_its_own_code(live: Live, door: Door) -> None:
    """A token's life is real time: the frozen clock of the sandbox does not count."""
    answer = door.ask("GET", "/v2/customers", token=forge.signed(live.settings, exp=int(time.time()) - 1))
    refused(answer, 401, "token_expired")
    assert 'error="invalid_token"' in (answer.header("www-authenticate") or "")
    assert door.ask("GET", "/v2/customers", token=forge.signed(live.settings)).status == 200


@pytest.mark.check
def test_a_token_that_was_good_is_401_once_it_has_expired(live: Live, door: Door) -> None:
    """What was verified once is remembered, but not for longer than it lives."""
    token = forge.signed(live.settings, exp=int(time.time()) + 2)
    assert door.ask("GET", "/v2/customers", token=token).status == 200
    time.sleep(2.1)
    refused(door.ask("GET", "/v2/customers", token=token), 401, "token_expired")


def test_a_token_of_another_sandbox_is_401(door: Door) -> None:
    other = httpx2.get(f"http://127.0.0.1:{door.port}/s/elsewhere/_sandbox/credentials", verify=NO_TLS).json()["jwt"]
    refused(door.ask("GET", "/v2/customers", token=other), 401, "invalid_token")


def token_with(door: Door, scopes: list[str]) -> str:
    """A token with these scopes alone."""
    answer = door.send("POST", "/_sandbox/tokens", {"scopes": scopes})
    assert answer.status == 201, answer.body
    token: str = answer.json()["token"]
    return token


ALL_SCOPES = sorted({scope for operation in OPERATIONS.values() for scope in operation.scopes})
SCOPED = [name for name, operation in OPERATIONS.items() if operation.scopes]


@pytest.mark.parametrize("operation", SCOPED)
def test_the_one_scope_alone_is_enough(door: Door, operation: str) -> None:
    (needed,) = OPERATIONS[operation].scopes
    answer = door.ask(OPERATIONS[operation].method, path_of(operation), b"{}", token=token_with(door, [needed]))
    assert answer.status not in (401, 403)


def test_write_does_not_imply_read(door: Door, customer_id: str) -> None:
    token = token_with(door, ["customers:write"])
    refused(door.ask("GET", f"/v2/customers/{customer_id}", token=token), 403, "insufficient_scope")


def test_a_wildcard_covers_its_resource_and_no_other(live: Live, door: Door) -> None:
    token = forge.signed(live.settings, scope="customers:*")
    assert door.ask("GET", "/v2/customers", token=token).status == 200
    refused(door.ask("GET", "/v2/orders", token=token), 403, "insufficient_scope")


def test_a_public_key_identifies_and_does_not_open(door: Door) -> None:
    made = door.send("POST", "/api-keys", {"name": "Chave", "scopes": ["orders:read"]}).json()["api_key"]
    assert door.ask("GET", "/api-keys/info", token=made["public_key"]).status == 200
    refused(door.ask("GET", "/v2/orders", token=made["public_key"]), 401, "invalid_token")


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
def test_a_key_is_refused_for_the_first_reason(door: Door, changes: dict[str, Any], status: int, code: str) -> None:
    """Expired wins over inactive, that over the address, that over the scope."""
    made = door.send("POST", "/api-keys", {"name": "Chave", "scopes": ["orders:read"]}).json()["api_key"]
    assert door.ask("GET", "/v2/orders?limit=1", token=made["private_key"]).status == 200
    assert door.send("PUT", f"/api-keys/{made['id']}", changes).status == 200
    answer = door.ask("GET", "/v2/orders?limit=1", token=made["private_key"])
    refused(answer, status, code)
    assert (status == 401 or code == "insufficient_scope") == (answer.header("www-authenticate") is not None)


def test_a_deleted_key_is_unknown_at_once(door: Door) -> None:
    made = door.send("POST", "/api-keys", {"name": "Chave", "scopes": ["orders:read"]}).json()["api_key"]
    assert door.ask("DELETE", f"/api-keys/{made['id']}").status == 200
    refused(door.ask("GET", "/v2/orders", token=made["private_key"]), 401, "invalid_token")


@pytest.mark.parametrize(
    ("allowed", "client", "status"),
    [
        ("203.0.113.0/24", "203.0.113.9", 200), ("203.0.113.0/24", "203.0.114.9", 403), ("2001:db8::/32",
        "2001:db8::5", 200),
        ("203.0.113.0/24", "::ffff:203.0.113.9", 200), ("203.0.113.0/24", "nonsense", 403), ("203.0.113.9/24",
        "203.0.113.1", 200),
    ],
)  # fmt: skip
def test_the_client_address_can_be_claimed_on_loopback(door: Door, allowed: str, client: str, status: int) -> None:
    body = {"name": "Rede", "scopes": ["orders:read"], "allowed_ips": [allowed]}
    made = door.send("POST", "/api-keys", body).json()["api_key"]
    headers = [("X-Sandbox-Client-IP", client)]
    assert door.ask("GET", "/v2/orders?limit=1", headers=headers, token=made["private_key"]).status == status


@pytest.mark.parametrize(
    ("allowed", "status"),
    [
        ("::ffff:127.0.0.1", 200),
        ("::FFFF:7f00:1", 200),
        ("::ffff:127.0.0.0/104", 200),
        ("::ffff:127.9.9.9/104", 200),
        ("::ffff:0:0/96", 200),
        ("::ffff:203.0.113.7", 403),
        ("::ffff:203.0.113.0/120", 403),
        ("::127.0.0.1", 403),
    ],
)
def test_an_ipv4_network_written_as_ipv6_is_that_network(door: Door, allowed: str, status: int) -> None:
    """It matched nobody: addresses were unwrapped, networks were not."""
    body = {"name": "Rede", "scopes": ["orders:read"], "allowed_ips": [allowed]}
    made = door.send("POST", "/api-keys", body).json()["api_key"]
    assert made["allowed_ips"] == [allowed]
    for headers in ([], [("X-Sandbox-Client-IP", "127.0.0.1")], [("X-Sandbox-Client-IP", "::ffff:127.0.0.1")]):
        assert door.ask("GET", "/v2/orders?limit=1", headers=headers, token=made["private_key"]).status == status


def test_tokens_that_differ_in_anything_have_names_of_their_own(live: Live) -> None:
    """A receiver may know by `jti` which tokens it has seen. Equal ones of one second are one token."""
    tokens, merchant, user = Tokens(b"0" * 32), str(uuid4()), str(uuid4())
    default = live.app.sandboxes.default
    other, later = default.fork("other"), default.fork("default")
    later.renew("0123456789abcdef")
    asked: list[tuple[Sandbox, str, str, list[str], int]] = [
        (default, merchant, user, ["orders:read"], 60),
        (default, merchant, user, ["orders:read"], 61),
        (default, merchant, user, ["orders:*"], 60),
        (default, merchant, str(uuid4()), ["orders:read"], 60),
        (other, merchant, user, ["orders:read"], 60),
        (later, merchant, user, ["orders:read"], 60),
    ]
    with wall_from(lambda: 1_000_500):
        made = [tokens.issue(*arguments)[0] for arguments in asked]
    with wall_from(lambda: 1_000_900):
        again = [tokens.issue(*arguments)[0] for arguments in asked]
    assert made == again
    found = [tokens.verified(f"Bearer {token}".encode()) for token in made]
    assert len(made) == len({each.claims["jti"] for each in found})
