"""Tokens: issues and verifies the JWTs of the server."""

from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from ..contract.formats import is_uuid
from ..core.clock import wall_ms
from ..core.ids import named_uuid
from ..core.problem import Unauthenticated
from ..core.record import Body
from ..domain.callers import Caller, Identity
from ..engine.sandbox import Sandbox

if TYPE_CHECKING:
    from joserfc.jwk import OctKey

ISSUER = "membership-sandbox"
REALM = 'Bearer realm="membership-sandbox"'
_REMEMBERED = 256  # tokens that were verified
_LONGEST = 4_096  # bytes of an Authorization header with a token: the journal keeps its claims
_CLAIMS = ("iss", "sandbox", "generation", "sub", "merchant_id", "scope", "iat", "exp", "jti")


def bad_credentials(message: str, code: str = "invalid_token", advice: str = "") -> Unauthenticated:
    """401 for a credential that is not valid."""
    return Unauthenticated(
        message,
        advice=advice,
        code=code,
        headers={
            "WWW-Authenticate": f'{REALM}, error="invalid_token", error_description="{message}"'
        },
    )


def _are_ours(claims: Body) -> bool:
    """Whether claims have all that tokens of this sandbox have."""
    if claims.get("iss") != ISSUER or not isinstance(claims.get("exp"), int):
        return False
    for name in ("sandbox", "sub", "merchant_id", "scope"):
        if not isinstance(claims.get(name), str):
            return False
    return bool(is_uuid(claims["sub"]) and is_uuid(claims["merchant_id"]))


class Tokens:
    """Issues and verifies the server's JWTs. HS256 only; verified tokens are cached.

    They expire by the wall clock, not by the sandbox clock. joserfc is imported for the first
    token: that takes 45 ms, which a start does not need. A server that has started has a thread
    sign one.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.verified = lru_cache(maxsize=_REMEMBERED)(self._verify)

    @cached_property
    def _key(self) -> "OctKey":
        from joserfc.jwk import OctKey

        return OctKey.import_key(self._secret)

    def issue(
        self,
        sandbox: Sandbox,
        merchant_id: str,
        user_id: str,
        scopes: Iterable[str],
        expires_in: int,
    ) -> tuple[str, int]:
        """A token and its expiry in seconds since 1970.

        The same arguments in the same second give the same token.
        """
        now = wall_ms() // 1000
        granted = " ".join(sorted(set(scopes)))
        claims: Body = {"iss": ISSUER, "sandbox": sandbox.name}
        if sandbox.origin.generation:
            claims["generation"] = sandbox.origin.generation
        claims |= {
            "sub": user_id,
            "merchant_id": merchant_id,
            "scope": granted,
            "iat": now,
            "exp": now + expires_in,
            "jti": named_uuid(
                "jti", sandbox.identity, merchant_id, user_id, granted, str(now), str(expires_in)
            ),
        }
        return self.signed(claims), now + expires_in

    def signed(self, claims: Body) -> str:
        """The JWT of claims, signed with HS256."""
        from joserfc import jwt

        return jwt.encode({"alg": "HS256", "typ": "at+jwt"}, dict(claims), self._key)

    def _verify(self, authorization: bytes) -> Caller:
        """The caller whose token is in an Authorization header, expired or not.

        Raises Unauthenticated.
        """
        from joserfc import jwt
        from joserfc.errors import JoseError

        if len(authorization) > _LONGEST:
            raise bad_credentials(f"The token is longer than {_LONGEST:,} characters.")
        try:
            token = authorization[7:].strip().decode("latin-1")
            claims = jwt.decode(token, self._key, algorithms=["HS256"]).claims
        except (JoseError, ValueError, TypeError, KeyError, UnicodeError, AttributeError):
            raise bad_credentials("The token is not one that this sandbox has issued.") from None
        if not _are_ours(claims):
            raise bad_credentials("The token lacks claims that tokens of this sandbox have.")
        # Ids are stored and compared in lower case, as everywhere.
        subject, merchant_id = claims["sub"].lower(), claims["merchant_id"].lower()
        kept = {name: claims[name] for name in _CLAIMS if isinstance(claims.get(name), int | str)}
        return Caller(
            Identity("jwt", subject, merchant_id, claims=kept), frozenset(claims["scope"].split())
        )
