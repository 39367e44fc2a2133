"""Issues and verifies the server's JWTs, and builds the 401 refusals."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ..contract.formats import is_uuid
from ..kernel.ids import named_uuid
from ..kernel.problem import Unauthenticated
from .call import Caller

if TYPE_CHECKING:
    from joserfc.jwk import OctKey

ISSUER = "membership-sandbox"
REALM = 'Bearer realm="membership-sandbox"'
_REMEMBERED, _LONGEST = 1024, 4096  # tokens, and bytes of the header of one: longer ones are verified every time


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


class Verified(NamedTuple):
    """A token of this server: whose it is, for which sandbox, and when it expires, in seconds since 1970."""

    caller: Caller
    sandbox: str
    expires_at: int


class Tokens:
    """Issues and verifies the server's JWTs. HS256 only; verified tokens are cached.

    joserfc is imported for the first token: that takes 35 ms, which a start has no use for.
    """

    def __init__(self, secret: bytes, seconds: Callable[[], float]) -> None:
        """`seconds` returns the seconds since 1970 by the wall clock: tokens expire by it, not by the sandbox clock."""
        self._secret, self._seconds = secret, seconds
        self.known: dict[bytes, Verified] = {}
        """The tokens that were verified last, by their Authorization header."""

    @cached_property
    def _key(self) -> "OctKey":
        from joserfc.jwk import OctKey

        return OctKey.import_key(self._secret)

    def issue(
        self, sandbox: str, merchant_id: str, user_id: str, scopes: Iterable[str], expires_in: int
    ) -> tuple[str, int]:
        """A token and its expiry in seconds since 1970. The same arguments in the same second give the same token."""
        now = int(self._seconds())
        granted = " ".join(sorted(set(scopes)))
        claims = {
            "iss": ISSUER,
            "sandbox": sandbox,
            "sub": user_id,
            "merchant_id": merchant_id,
            "scope": granted,
            "iat": now,
            "exp": now + expires_in,
            "jti": named_uuid("jti", sandbox, merchant_id, user_id, granted, str(now), str(expires_in)),
        }
        return self.signed(claims), now + expires_in

    def signed(self, claims: Mapping[str, Any]) -> str:
        """A token of these claims, whatever they say."""
        from joserfc import jwt

        return jwt.encode({"alg": "HS256", "typ": "at+jwt"}, dict(claims), self._key)

    def caller(self, authorization: bytes, sandbox: str, now: float) -> Caller:
        """Whom the token in an Authorization header admits to a sandbox at an instant, in seconds since 1970.

        Raises Unauthenticated.
        """
        known = self.known.get(authorization) or self._verified(authorization)
        if known.expires_at <= now:
            raise bad_credentials("The token has expired. Ask for a new one.", "token_expired")
        if known.sandbox != sandbox:
            raise bad_credentials(
                "The token was issued for another sandbox. Each has its own: /s/NAME/_sandbox/credentials."
            )
        return known.caller

    def caller_of(self, authorization: bytes) -> Caller | None:
        """Whose token it is, expired or of another sandbox too; None for one that this server has not issued."""
        try:
            return (self.known.get(authorization) or self._verified(authorization)).caller
        except Unauthenticated:
            return None

    def sandbox_named(self, authorization: bytes) -> str | None:
        """The sandbox that a bearer token of this server names; None for anything else, which is refused later."""
        if authorization[:9].lower() != b"bearer ey":
            return None
        try:
            return self._verified(authorization).sandbox
        except Unauthenticated:
            return None

    def _verified(self, authorization: bytes) -> Verified:
        from joserfc import jwt
        from joserfc.errors import JoseError

        token = authorization[7:].decode("latin-1").strip()
        try:
            claims = jwt.decode(token, self._key, algorithms=["HS256"]).claims
        except (JoseError, ValueError, TypeError, KeyError, UnicodeError, AttributeError):
            raise bad_credentials("The token is not one that this sandbox has issued.") from None
        if (
            claims.get("iss") != ISSUER
            or not isinstance(claims.get("exp"), int)
            or not all(isinstance(claims.get(name), str) for name in ("sandbox", "sub", "merchant_id", "scope"))
            or not (is_uuid(claims["sub"]) and is_uuid(claims["merchant_id"]))
        ):
            raise bad_credentials("The token lacks claims that this sandbox gives its own.")
        # Ids are stored and compared in lower case, as everywhere.
        subject, merchant_id = claims["sub"].lower(), claims["merchant_id"].lower()
        caller = Caller("jwt", subject, merchant_id, frozenset(claims["scope"].split()), claims=claims)
        verified = Verified(caller, claims["sandbox"], claims["exp"])
        if len(authorization) <= _LONGEST:
            if len(self.known) >= _REMEMBERED:
                del self.known[next(iter(self.known))]
            self.known[authorization] = verified
        return verified
