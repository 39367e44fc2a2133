"""Credentials: issues and verifies the server's JWTs, and turns an Authorization header into a caller."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Any

import orjson

from ..contract.document import Operation
from ..contract.formats import is_uuid
from ..domain.api_keys import digest
from ..engine.sandbox import Sandbox
from ..kernel.clock import wall_ms
from ..kernel.ids import named_uuid
from ..kernel.problem import Forbidden, Refusal, Unauthenticated, detail
from ..kernel.record import Record
from ..kernel.text import unmapped
from .call import ADMIN_KEY, Call, Caller

if TYPE_CHECKING:
    from joserfc.jwk import OctKey

ISSUER = "membership-sandbox"
REALM = 'Bearer realm="membership-sandbox"'
_KEYS = ("sk_", "pk_")  # API keys begin so
_LONGEST_ADDRESS = 45  # characters
_MAPPED = IPv6Network("::ffff:0:0/96")
_REMEMBERED = 1024  # tokens that were verified


def no_credentials(why: str = "") -> Unauthenticated:
    """401 for a request without a bearer credential: a challenge without an error, as RFC 6750 §3.1 demands.

    `why` says what was sent instead.
    """
    return Unauthenticated(
        f"{why}Send a credential: Authorization: Bearer <token or private key>.",
        advice="GET /_sandbox/credentials shows one.",
        code="missing_credentials",
        headers={"WWW-Authenticate": REALM},
    )


def bad_credentials(message: str, code: str = "invalid_token", advice: str = "") -> Unauthenticated:
    """401 for a credential that is not valid."""
    challenge = f'{REALM}, error="invalid_token", error_description="{message}"'
    return Unauthenticated(message, advice=advice, code=code, headers={"WWW-Authenticate": challenge})


class Tokens:
    """Issues and verifies the server's JWTs. HS256 only; verified tokens are cached.

    They expire by the wall clock, not by the sandbox clock. joserfc is imported for the first token: that takes 35 ms,
    which a start does not need.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._verified = lru_cache(maxsize=_REMEMBERED)(self._verify)

    @cached_property
    def _key(self) -> "OctKey":
        from joserfc.jwk import OctKey

        return OctKey.import_key(self._secret)

    def issue(
        self, sandbox: Sandbox, merchant_id: str, user_id: str, scopes: Iterable[str], expires_in: int
    ) -> tuple[str, int]:
        """A token and its expiry in seconds since 1970. The same arguments in the same second give the same token."""
        now = wall_ms() // 1000
        granted = " ".join(sorted(set(scopes)))
        claims = {
            "iss": ISSUER,
            "sandbox": sandbox.name,
            **({"generation": sandbox.generation} if sandbox.generation else {}),
            "sub": user_id,
            "merchant_id": merchant_id,
            "scope": granted,
            "iat": now,
            "exp": now + expires_in,
            "jti": named_uuid("jti", sandbox.identity, merchant_id, user_id, granted, str(now), str(expires_in)),
        }
        return self.signed(claims), now + expires_in

    def signed(self, claims: Mapping[str, Any]) -> str:
        from joserfc import jwt

        return jwt.encode({"alg": "HS256", "typ": "at+jwt"}, dict(claims), self._key)

    def caller_in(self, authorization: bytes) -> Caller | None:
        """The caller of a bearer token of this server; None for anything else, which is rejected later."""
        if authorization[:9].lower() != b"bearer ey":
            return None
        try:
            return self.verified(authorization)
        except Unauthenticated:
            return None

    def verified(self, authorization: bytes) -> Caller:
        """The caller whose token is in an Authorization header, expired or not. Raises Unauthenticated."""
        return self._verified(authorization[7:].strip())

    def _verify(self, token: bytes) -> Caller:
        from joserfc import jwt
        from joserfc.errors import JoseError

        try:
            claims = jwt.decode(token.decode("latin-1"), self._key, algorithms=["HS256"]).claims
        except (JoseError, ValueError, TypeError, KeyError, UnicodeError, AttributeError):
            raise bad_credentials("The token is not one that this sandbox has issued.") from None
        if (
            claims.get("iss") != ISSUER
            or not isinstance(claims.get("exp"), int)
            or not all(isinstance(claims.get(name), str) for name in ("sandbox", "sub", "merchant_id", "scope"))
            or not (is_uuid(claims["sub"]) and is_uuid(claims["merchant_id"]))
        ):
            raise bad_credentials("The token lacks claims that tokens of this sandbox have.")
        # Ids are stored and compared in lower case, as everywhere.
        subject, merchant_id = claims["sub"].lower(), claims["merchant_id"].lower()
        return Caller("jwt", subject, merchant_id, frozenset(claims["scope"].split()), claims=claims)


def admit(call: Call, operation: Operation) -> None:
    """Set `call.caller` and `call.store`. Raises Unauthenticated (401) or Forbidden (403).

    Checked in order: present, parses, known, right kind of credential, expired, inactive, address, scopes.
    """
    header = call.headers.get(b"authorization")
    if header is None:
        raise no_credentials("X-API-Key is not supported. " if b"x-api-key" in call.headers else "")
    caller = call.caller = call.trace.caller = _caller(call, header, operation.scheme)
    store = call.sandbox.stores.get(caller.merchant_id)
    if store is None:
        raise bad_credentials(
            "The merchant of the token does not exist in this sandbox, or no longer exists.",
            advice="POST /_sandbox/tokens creates one with a token.",
        )
    call.store = store
    if caller.key_id is not None:
        store.use_key(caller.key_id, call.now_text)
    if "*" not in caller.scopes and (lacking := [s for s in operation.scopes if not caller.may(s)]):
        scope = min(lacking)
        raise Forbidden(
            f"This credential lacks the scope {scope}.",
            details=[detail("scope", "required", scope, "header")],
            headers={"WWW-Authenticate": f'{REALM}, error="insufficient_scope", scope="{scope}"'},
        )


def sees_everything(call: Call) -> bool:
    """Whether a request has a credential that may read all records of the sandbox's merchant."""
    header = call.headers.get(b"authorization")
    if header is None:
        return False
    try:
        caller = _caller(call, header, "bearer")
    except Refusal:
        return False
    scopes = call.server.document.scopes
    reads = [scope["name"] for scope in scopes if scope["access"] == "read" and scope["assignable"]]
    return (
        caller.projects is None and caller.merchant_id == call.sandbox.store.merchant.id and all(map(caller.may, reads))
    )


def _caller(call: Call, header: bytes, scheme: str | None) -> Caller:
    if header[:9].lower() == b"bearer ey" and call.server.settings.auth == "strict":
        return _token_caller(call, header)
    kind, _, token = header.decode("latin-1").strip().partition(" ")
    token = token.strip()
    if kind.lower() != "bearer" or not token:
        wrong = "has nothing after Bearer" if kind.lower() == "bearer" else "does not begin with Bearer"
        raise no_credentials(f"The Authorization header {wrong}. ")  # not quoted: it may be a secret
    if token.startswith(_KEYS):
        return _key_caller(call, token, scheme)
    try:
        return _token_caller(call, b"Bearer " + token.encode("latin-1"))
    except Unauthenticated:
        if call.server.settings.auth == "lenient":
            return _seeded_merchant(call.sandbox)
        raise


def _token_caller(call: Call, authorization: bytes) -> Caller:
    caller = call.trace.caller = call.token or call.server.tokens.verified(authorization)  # also of one that is refused
    if caller.claims["exp"] <= call.trace.received / 1000:
        raise bad_credentials("The token has expired. Ask for a new one.", "token_expired")
    if caller.claims["sandbox"] != call.sandbox.name:
        raise bad_credentials(
            "This token is for another sandbox.", advice="GET /_sandbox/credentials has one for this sandbox."
        )
    if caller.claims.get("generation", "") != call.sandbox.generation:
        message = "This token has ended: the sandbox was rotated, or deleted and created again."
        raise bad_credentials(message, advice="GET /_sandbox/credentials has a new one.")
    return caller


def _key_caller(call: Call, token: str, scheme: str | None) -> Caller:
    sandbox, is_public = call.sandbox, token.startswith("pk_")
    key = _key_in(sandbox, token)
    if key is not None:
        call.trace.caller = key  # also of a key that is refused
    if is_public and scheme != "publicBearer" and call.server.settings.auth == "strict":
        raise bad_credentials("A public key only identifies a merchant. Use the private key or a token here.")
    if key is not None and scheme == "jwt" and not is_public:
        raise Forbidden(
            "API keys are managed with a JWT, never with an API key.",
            advice="POST /_sandbox/tokens issues one.",
            code="jwt_required",
            details=[detail("Authorization", "jwt_required", "Send a JWT.", "header")],
        )
    if key is None and call.server.settings.auth == "lenient":
        return _seeded_merchant(sandbox)
    if key is None:
        other = call.server.sandboxes.seeded_owner(*_unique(token))
        if other is None or other == sandbox.name:
            raise bad_credentials("No API key of this sandbox has this value.")
        raise bad_credentials(
            f"This API key is one of the sandbox {other}, and the request is for {sandbox.name}.",
            advice="GET /_sandbox/credentials shows its own.",
        )
    if key.expires_at is not None and key.expires_at <= call.now_text:
        raise bad_credentials("This API key has expired. Use another one.", "api_key_expired")
    if not key.is_active:
        raise bad_credentials("This API key is switched off: set its is_active to true.", "api_key_inactive")
    if key.networks:
        _check_address(call, key)
    return key


def _check_address(call: Call, caller: Caller) -> None:
    claimed = call.headers.get(b"x-sandbox-client-ip")
    if call.server.settings.is_public and not call.server.knows_admin(call.headers.get(ADMIN_KEY)):
        claimed = None
    text = claimed.decode("latin-1") if claimed is not None else call.peer or ""
    try:
        address = unmapped(ip_address(text))
    except ValueError:
        address = None
    if address is None or not any(address in network for network in caller.networks):
        plain = "".join(sign if sign.isprintable() else "?" for sign in text[:_LONGEST_ADDRESS])
        shown = plain or "an unknown address"
        raise Forbidden(
            f"This API key may not be used from {shown} (allowed_ips). To try another address, send it as "
            f"X-Sandbox-Client-IP{' with the admin key' if call.server.settings.is_public else ''}.",
            code="ip_not_allowed",
            details=[detail("allowed_ips", "ip_not_allowed", "The address is not in the key's list.", "header")],
        )


def network_of(text: str) -> IPv4Network | IPv6Network:
    """A network or a single address, host bits ignored, as IPv4 where it is IPv4 written as IPv6."""
    network = ip_network(text, strict=False)
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        return IPv4Network((unmapped(network.network_address), network.prefixlen - 96))
    return network


def _seeded_merchant(sandbox: Sandbox) -> Caller:
    merchant = sandbox.store.merchant
    return Caller("jwt", merchant.user_id, merchant.id, frozenset("*"))


@lru_cache(maxsize=4096)  # records never change: a changed key is a new record
def _key_of(record: Record, merchant_id: str) -> Caller:
    public, hidden = orjson.loads(record.public), orjson.loads(record.hidden)
    return Caller(
        "private_key",
        hidden["user_id"],
        merchant_id,
        frozenset(public["scopes"]),
        record.id,
        frozenset(hidden["allowed_projects"]) if hidden["allowed_projects"] else None,
        tuple(network_of(text) for text in public["allowed_ips"]),
        public["expires_at"],
        public["is_active"],
    )


def _unique(token: str) -> tuple[str, str]:
    """The unique index by which an API key is found, and the value there."""
    return ("digest", digest(token)) if token.startswith("sk_") else ("public_key", token)


def _key_in(sandbox: Sandbox, token: str) -> Caller | None:
    """The API key of a sandbox with this private or public half. The caller of a public half has no scopes."""
    unique, value = _unique(token)
    for store in sandbox.stores.values():
        record = store.api_keys.find(store.api_keys.holder(unique, value) or "")
        if record is not None:
            key = _key_of(record, store.merchant.id)
            return key if unique == "digest" else replace(key, kind="public_key", scopes=frozenset())
    return None
