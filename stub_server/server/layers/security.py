"""Security: turns an Authorization header into a caller, whose scopes must be those of
the operation.
"""

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from time import perf_counter_ns

import orjson

from ...core.clock import iso
from ...core.problem import Forbidden, Refusal, Unauthenticated, detail
from ...core.record import Record
from ...core.text import unmapped
from ...domain.api_keys import digest
from ...domain.callers import Caller, Identity
from ...engine.sandbox import Sandbox
from ..reply import Answering
from ..request import ADMIN_KEY
from ..tokens import REALM, bad_credentials
from ..work import Work
from .way import Layer, Way

_KEYS = ("sk_", "pk_")  # API keys begin so
_MAPPED = IPv6Network("::ffff:0:0/96")


def no_credentials(why: str) -> Unauthenticated:
    """401 for a request without a bearer credential: a challenge without an error, as RFC 6750 §3.1
    demands.

    `why` says what was sent instead.
    """
    return Unauthenticated(
        f"{why}Send a credential: Authorization: Bearer <token or private key>.",
        advice="GET /_sandbox/credentials shows one.",
        code="missing_credentials",
        headers={"WWW-Authenticate": REALM},
    )


def sees_everything(work: Work) -> bool:
    """Whether a request has a credential that may read all records of the sandbox's merchant."""
    try:
        caller = _sent_by(work, "bearer")
    except Refusal:
        return False
    reads = [
        scope["name"]
        for scope in work.server.document.scopes
        if scope["access"] == "read" and scope["assignable"]
    ]
    return (
        caller.projects is None
        and caller.identity.merchant_id == work.sandbox.store.merchant.id
        and all(map(caller.may, reads))
    )


class Security:
    """Checks the credential, where the operation requires one.

    The journal learns whose it is, even if refused.
    """

    def __init__(self, app: Layer) -> None:
        self.app = app.__call__

    def __call__(self, way: Way) -> Answering:
        if way.endpoint.security:
            way.trace.auth_at = perf_counter_ns()
            admit(way)
        return self.app(way)


def admit(way: Way, *, again: bool = False) -> None:
    """Find whom a request is from. Raises Unauthenticated (401) or Forbidden (403).

    Checked in order: present, parses, known, right kind of credential, expired, inactive, address,
    scopes. One that is admitted `again` does not use its key twice.
    """
    operation, sandbox, token = way.endpoint.operation, way.sandbox, way.token
    if token is None or _is_lenient(way):
        caller = _sent_by(way, operation.scheme)
        way.trace.caller = caller.identity
    else:  # it was verified to choose the sandbox
        caller = _of_token(token, way)
    store = sandbox.stores.get(caller.identity.merchant_id)
    if store is None:
        raise bad_credentials(
            "The merchant of the token does not exist in this sandbox, or no longer exists.",
            advice="POST /_sandbox/tokens creates one with a token.",
        )
    if caller.identity.key_id is not None and not again:
        store.use_key(caller.identity.key_id, iso(sandbox.clock.now))
    if "*" not in caller.scopes:
        lacking = [scope for scope in operation.scopes if not caller.may(scope)]
        if lacking:
            scope = min(lacking)
            raise Forbidden(
                f"This credential lacks the scope {scope}.",
                details=[detail("scope", "required", scope, "header")],
                headers={
                    "WWW-Authenticate": f'{REALM}, error="insufficient_scope", scope="{scope}"'
                },
            )
    way.caller = caller


def _is_lenient(work: Work) -> bool:
    return work.server.settings.auth == "lenient"


def _sent_by(work: Work, scheme: str | None) -> Caller:
    """Whose credential a request has; `scheme` is what the operation asks for."""
    headers = work.request.headers
    header = headers.get(b"authorization")
    if header is None:
        raise no_credentials("X-API-Key is not supported. " if b"x-api-key" in headers else "")
    kind, _, text = header.decode("latin-1").strip().partition(" ")
    text = text.strip()
    if kind.lower() != "bearer" or not text:  # not quoted: it may be a secret
        raise no_credentials("The Authorization header must be Bearer and a credential. ")
    if text.startswith(_KEYS):
        return _of_key(text, scheme, work)
    try:
        return _of_token(work.server.tokens.verified(b"Bearer " + text.encode("latin-1")), work)
    except Unauthenticated:
        if _is_lenient(work):
            return _seeded_merchant(work.sandbox)
        raise


def _of_token(caller: Caller, work: Work) -> Caller:
    trace, sandbox, claims = work.trace, work.sandbox, caller.identity.claims
    trace.caller = caller.identity
    assert claims is not None
    if claims["exp"] <= trace.received / 1000:
        raise bad_credentials("The token has expired. Ask for a new one.", "token_expired")
    if claims["sandbox"] != sandbox.name:
        raise bad_credentials(
            "This token is for another sandbox.",
            advice="GET /_sandbox/credentials has one for this sandbox.",
        )
    if claims.get("generation", "") != sandbox.origin.generation:
        raise bad_credentials(
            "This token has ended: the sandbox was rotated, or deleted and created again.",
            advice="GET /_sandbox/credentials has a new one.",
        )
    return caller


def _of_key(token: str, scheme: str | None, work: Work) -> Caller:
    sandbox = work.sandbox
    is_public, is_lenient = token.startswith("pk_"), _is_lenient(work)
    key = _key_in(sandbox, token)
    if key is not None:
        work.trace.caller = key.identity
    if is_public and scheme != "publicBearer" and not is_lenient:
        raise bad_credentials(
            "A public key only identifies a merchant. Use the private key or a token here."
        )
    if key is not None and scheme == "jwt" and not is_public:
        raise Forbidden(
            "API keys are managed with a JWT, never with an API key.",
            advice="POST /_sandbox/tokens issues one.",
            code="jwt_required",
            details=[detail("Authorization", "jwt_required", "Send a JWT.", "header")],
        )
    if key is None:
        if is_lenient:
            return _seeded_merchant(sandbox)
        raise _unknown(token, work)
    _check_key(key, work)
    return key


def _check_key(key: Caller, work: Work) -> None:
    """Raises Unauthenticated for a key that has expired or is switched off, Forbidden for a foreign
    address.
    """
    if key.expires_at is not None and key.expires_at <= work.now_text:
        raise bad_credentials("This API key has expired. Use another one.", "api_key_expired")
    if not key.is_active:
        raise bad_credentials(
            "This API key is switched off: set its is_active to true.", "api_key_inactive"
        )
    if key.networks:
        _check_address(key, work)


def _unknown(token: str, work: Work) -> Unauthenticated:
    other = work.sandboxes.seeded_owner(*_unique(token))
    if other is None:
        return bad_credentials("No API key of this sandbox has this value.")
    return bad_credentials(
        f"This API key is one of the sandbox {other}, and the request is for {work.sandbox.name}.",
        advice="GET /_sandbox/credentials shows its own.",
    )


def _check_address(caller: Caller, work: Work) -> None:
    """Raises Forbidden for a key that may not be used from the client's address, or from the one
    that is to be tried.
    """
    is_public, headers = work.server.settings.is_public, work.request.headers
    text, claimed = work.request.peer, headers.get(b"x-sandbox-client-ip")
    if claimed is not None and (
        not is_public or work.server.guard.knows_admin(headers.get(ADMIN_KEY))
    ):
        text = claimed.decode("latin-1")
    try:
        address = unmapped(ip_address(text))
        shown = str(address)
    except ValueError:
        address, shown = None, "an unknown address"
    if address is None or not any(address in network for network in caller.networks):
        another = "To try another address, send it as X-Sandbox-Client-IP"
        if is_public:
            another += " with the admin key"
        raise Forbidden.at(
            "allowed_ips",
            f"This API key may not be used from {shown} (allowed_ips). {another}.",
            "ip_not_allowed",
            where="header",
        )


def network_of(text: str) -> IPv4Network | IPv6Network:
    """A network or a single address, host bits ignored, as IPv4 where it is IPv4
    written as IPv6.
    """
    network = ip_network(text, strict=False)
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        return IPv4Network((unmapped(network.network_address), network.prefixlen - 96))
    return network


def _seeded_merchant(sandbox: Sandbox) -> Caller:
    merchant = sandbox.store.merchant
    return Caller(Identity("jwt", merchant.user_id, merchant.id), frozenset("*"))


@lru_cache(maxsize=64)  # records never change: a changed key is a new one, of up to 60 KB
def _key_of(record: Record, merchant_id: str, kind: str) -> Caller:
    """The caller of a key; that of its public half has no scopes."""
    public, hidden = orjson.loads(record.public), orjson.loads(record.hidden)
    return Caller(
        Identity(kind, hidden["user_id"], merchant_id, record.id),
        frozenset(public["scopes"] if kind == "private_key" else ()),
        frozenset(hidden["allowed_projects"]) if hidden["allowed_projects"] else None,
        tuple(network_of(text) for text in public["allowed_ips"]),
        public["expires_at"],
        public["is_active"],
    )


def _unique(token: str) -> tuple[str, str]:
    """The unique index by which an API key is found, and the value there."""
    return ("digest", digest(token)) if token.startswith("sk_") else ("public_key", token)


def _key_in(sandbox: Sandbox, token: str) -> Caller | None:
    """The API key of a sandbox with this private or public half."""
    unique, value = _unique(token)
    for store in sandbox.stores.values():
        record = store.api_keys.find(store.api_keys.holder(unique, value) or "")
        if record is not None:
            return _key_of(
                record,
                store.merchant.id,
                "private_key" if unique == "digest" else "public_key",
            )
    return None
