"""Whom a request is from."""

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network

from ..core.record import Body


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose credential it is, a JWT's user or an API key: what the journal keeps of a caller.

    `kind` is jwt, private_key or public_key. `claims` are those of a JWT, as `server/tokens.py`
    issues them.
    """

    kind: str
    subject: str
    merchant_id: str
    key_id: str | None = None
    claims: Body | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated caller, and what the credential permits.

    `projects` is None if every project is allowed, `networks` empty if every address is; a key may
    have expired or be switched off.
    """

    identity: Identity
    scopes: frozenset[str]
    projects: frozenset[str] | None = None
    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    expires_at: str | None = None
    is_active: bool = True

    def may(self, scope: str) -> bool:
        """Whether the caller has a scope, by name or (JWT only) by wildcard."""
        scopes = self.scopes
        return scope in scopes or "*" in scopes or scope.partition(":")[0] + ":*" in scopes
