"""Security: turns an Authorization header into a caller, whose scopes must be those of
the operation.
"""

from collections.abc import Awaitable
from dataclasses import replace
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from time import perf_counter_ns

import orjson

from ...contract.document import Operation
from ...core.clock import iso
from ...core.problem import Forbidden, Refusal, Unauthenticated, detail
from ...core.record import Record
from ...core.text import unmapped
from ...domain.api_keys import digest
from ...domain.callers import Caller, Identity
from ...engine.kept import Trace
from ...engine.sandbox import Sandbox
from ..reply import Answer
from ..request import ADMIN_KEY, Request
from ..server import Server
from ..tokens import REALM, bad_credentials
from .way import Layer, Way

_KEYS = ("sk_", "pk_")  # API keys begin so
_LONGEST_ADDRESS = 45  # characters
_MAPPED = IPv6Network("::ffff:0:0/96")


def no_credentials(why: str = "") -> Unauthenticated:
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


def sees_everything(server: Server, request: Request, sandbox: Sandbox, trace: Trace) -> bool:
    """Whether a request has a credential that may read all records of the sandbox's merchant."""
    if b"authorization" not in request.headers:
        return False
    try:
        caller = Gate(server).caller(request, sandbox, trace, "bearer")
    except Refusal:
        return False
    scopes = server.document.scopes
    reads = [scope["name"] for scope in scopes if scope["access"] == "read" and scope["assignable"]]
    return (
        caller.projects is None
        and caller.identity.merchant_id == sandbox.store.merchant.id
        and all(map(caller.may, reads))
    )


class Security:
    """Checks the credential, where the operation requires one.

    The journal learns whose it is, even if refused.
    """

    def __init__(self, app: Layer, server: Server) -> None:
        self.app, self._gate = app.__call__, Gate(server)

    def __call__(self, way: Way) -> Awaitable[Answer]:
        endpoint = way.endpoint
        if endpoint.security:
            way.trace.auth_at = perf_counter_ns()
            way.caller = self._gate.admit(endpoint.operation, way)
        return self.app(way)


class Gate:
    """Checks the credentials of requests."""

    def __init__(self, server: Server) -> None:
        self._server, self._is_lenient = server, server.settings.auth == "lenient"

    def admit(self, operation: Operation, way: Way, *, again: bool = False) -> Caller:
        """Whom a request is from. Raises Unauthenticated (401) or Forbidden (403).

        Checked in order: present, parses, known, right kind of credential, expired, inactive,
        address, scopes. One that is admitted `again` does not use its key twice.
        """
        sandbox: Sandbox = way.target.sandbox
        trace = way.trace
        token: Caller | None = way.token  # verified already, to choose the sandbox
        if token is None or self._is_lenient:
            caller = self.caller(way.request, sandbox, trace, operation.scheme)
            trace.caller = caller.identity
        else:
            caller = self._of_token(token, sandbox, trace)
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
                raise _lacks(min(lacking))
        return caller

    def caller(
        self, request: Request, sandbox: Sandbox, trace: Trace, scheme: str | None
    ) -> Caller:
        """Whose credential it is; `scheme` is what the operation asks for."""
        headers = request.headers
        header = headers.get(b"authorization")
        if header is None:
            raise no_credentials("X-API-Key is not supported. " if b"x-api-key" in headers else "")
        kind, _, text = header.decode("latin-1").strip().partition(" ")
        text = text.strip()
        if kind.lower() != "bearer" or not text:
            wrong = "does not begin with Bearer"
            if kind.lower() == "bearer":
                wrong = "has nothing after Bearer"
            # not quoted: it may be a secret
            raise no_credentials(f"The Authorization header {wrong}. ")
        if text.startswith(_KEYS):
            return self._of_key(text, scheme, request, sandbox, trace)
        try:
            caller = self._server.tokens.verified(b"Bearer " + text.encode("latin-1"))
            return self._of_token(caller, sandbox, trace)
        except Unauthenticated:
            if self._is_lenient:
                return _seeded_merchant(sandbox)
            raise

    def _of_token(self, caller: Caller, sandbox: Sandbox, trace: Trace) -> Caller:
        trace.caller, claims = caller.identity, caller.identity.claims
        assert claims is not None
        if claims["exp"] <= trace.received / 1000:
            raise bad_credentials("The token has expired. Ask for a new one.", "token_expired")
        if claims["sandbox"] != sandbox.name:
            raise bad_credentials(
                "This token is for another sandbox.",
                advice="GET /_sandbox/credentials has one for this sandbox.",
            )
        if claims.get("generation", "") != sandbox.origin.generation:
            message = "This token has ended: the sandbox was rotated, or deleted and created again."
            raise bad_credentials(message, advice="GET /_sandbox/credentials has a new one.")
        return caller

    def _of_key(
        self, token: str, scheme: str | None, request: Request, sandbox: Sandbox, trace: Trace
    ) -> Caller:
        is_public = token.startswith("pk_")
        key = _key_in(sandbox, token)
        if key is not None:
            trace.caller = key.identity
        if is_public and scheme != "publicBearer" and not self._is_lenient:
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
            if self._is_lenient:
                return _seeded_merchant(sandbox)
            raise self._unknown(token, sandbox)
        self._check_key(key, request, sandbox)
        return key

    def _check_key(self, key: Caller, request: Request, sandbox: Sandbox) -> None:
        """Raises Unauthenticated for a key that has expired or is switched off, Forbidden for a
        foreign address.
        """
        if key.expires_at is not None and key.expires_at <= iso(sandbox.clock.now):
            raise bad_credentials("This API key has expired. Use another one.", "api_key_expired")
        if not key.is_active:
            raise bad_credentials(
                "This API key is switched off: set its is_active to true.", "api_key_inactive"
            )
        if key.networks:
            self._check_address(key, request)

    def _unknown(self, token: str, sandbox: Sandbox) -> Unauthenticated:
        other = self._server.sandboxes.seeded_owner(*_unique(token))
        if other is None or other == sandbox.name:
            return bad_credentials("No API key of this sandbox has this value.")
        return bad_credentials(
            f"This API key is one of the sandbox {other}, and the request is for {sandbox.name}.",
            advice="GET /_sandbox/credentials shows its own.",
        )

    def _check_address(self, caller: Caller, request: Request) -> None:
        server, headers = self._server, request.headers
        claimed = headers.get(b"x-sandbox-client-ip")
        if server.settings.is_public and not server.guard.knows_admin(headers.get(ADMIN_KEY)):
            claimed = None
        text = claimed.decode("latin-1") if claimed is not None else request.peer
        try:
            address = unmapped(ip_address(text))
        except ValueError:
            address = None
        if address is None or not any(address in network for network in caller.networks):
            raise _foreign_address(text, needs_admin_key=server.settings.is_public)


def _lacks(scope: str) -> Forbidden:
    """403 for a credential without a scope of the operation."""
    return Forbidden(
        f"This credential lacks the scope {scope}.",
        details=[detail("scope", "required", scope, "header")],
        headers={"WWW-Authenticate": f'{REALM}, error="insufficient_scope", scope="{scope}"'},
    )


def _foreign_address(address: str, *, needs_admin_key: bool) -> Forbidden:
    """403 for an API key that may not be used from an address, which the client may have sent."""
    plain = "".join(sign if sign.isprintable() else "?" for sign in address[:_LONGEST_ADDRESS])
    another = "To try another address, send it as X-Sandbox-Client-IP"
    if needs_admin_key:
        another += " with the admin key"
    shown = plain or "an unknown address"
    why = "The address is not in the key's list."
    return Forbidden(
        f"This API key may not be used from {shown} (allowed_ips). {another}.",
        code="ip_not_allowed",
        details=[detail("allowed_ips", "ip_not_allowed", why, "header")],
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
def _key_of(record: Record, merchant_id: str) -> Caller:
    public, hidden = orjson.loads(record.public), orjson.loads(record.hidden)
    return Caller(
        Identity("private_key", hidden["user_id"], merchant_id, record.id),
        frozenset(public["scopes"]),
        frozenset(hidden["allowed_projects"]) if hidden["allowed_projects"] else None,
        tuple(network_of(text) for text in public["allowed_ips"]),
        public["expires_at"],
        public["is_active"],
    )


def _unique(token: str) -> tuple[str, str]:
    """The unique index by which an API key is found, and the value there."""
    return ("digest", digest(token)) if token.startswith("sk_") else ("public_key", token)


def _key_in(sandbox: Sandbox, token: str) -> Caller | None:
    """The API key of a sandbox with this private or public half.

    The caller of a public half has no scopes.
    """
    unique, value = _unique(token)
    for store in sandbox.stores.values():
        record = store.api_keys.find(store.api_keys.holder(unique, value) or "")
        if record is not None:
            key = _key_of(record, store.merchant.id)
            if unique == "digest":
                return key
            return replace(
                key, identity=replace(key.identity, kind="public_key"), scopes=frozenset()
            )
    return None
