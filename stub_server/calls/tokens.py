"""Issues and verifies the server's JWTs, and builds the 401 refusals."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from ..contract.formats import is_uuid
from ..kernel.ids import named_uuid
from ..kernel.problem import Unauthenticated
from .call import Caller

ISSUER = "membership-sandbox"
REALM = 'Bearer realm="membership-sandbox"'
_REMEMBERED, _LONGEST = 1024, 4096  # tokens, and characters of one: longer ones are verified every time


def no_credentials() -> Unauthenticated:
    """401 for a request without a bearer credential: a challenge without an error, as RFC 6750 §3.1 demands."""
    return Unauthenticated(
        "Send a credential: Authorization: Bearer <token or private key>. GET /_sandbox/credentials shows one.",
        code="missing_credentials",
        headers={"WWW-Authenticate": REALM},
    )


def bad_credentials(message: str, code: str = "invalid_token") -> Unauthenticated:
    """401 for a credential that is not valid."""
    challenge = f'{REALM}, error="invalid_token", error_description="{message}"'
    return Unauthenticated(message, code=code, headers={"WWW-Authenticate": challenge})


class Tokens:
    """Issues and verifies the server's JWTs. HS256 only; verified tokens are cached."""

    def __init__(self, secret: bytes, seconds: Callable[[], float]) -> None:
        """`seconds` returns the seconds since 1970 by the wall clock: tokens expire by it, not by the sandbox clock."""
        self._key = OctKey.import_key(secret)
        self._seconds = seconds
        self._known: dict[str, Mapping[str, Any]] = {}
        self._worlds: dict[bytes, str] = {}

    def issue(
        self, sandbox: str, merchant_id: str, user_id: str, scopes: Iterable[str], expires_in: int, serial: int = 0
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
            "jti": named_uuid("jti", sandbox, merchant_id, granted, str(now), str(serial)),
        }
        return jwt.encode({"alg": "HS256", "typ": "at+jwt"}, claims, self._key), now + expires_in

    def claims(self, token: str) -> Mapping[str, Any]:
        """The claims of a token that this server issued. Raises Unauthenticated."""
        known = self._known.get(token)
        if known is None:
            known = self._verify(token)
        if known["exp"] <= self._seconds():
            raise bad_credentials("The token has expired. Ask for a new one.", "token_expired")
        return known

    def sandbox_named(self, authorization: bytes) -> str | None:
        """The sandbox that a bearer token of this server names; None for anything else, which is refused later."""
        name = self._worlds.get(authorization)
        if name is None:
            try:
                name = str(self.claims(authorization[7:].decode("latin-1").strip())["sandbox"])
            except Unauthenticated:
                return None
            if len(authorization) > _LONGEST:
                return name
            if len(self._worlds) >= _REMEMBERED:
                del self._worlds[next(iter(self._worlds))]
            self._worlds[authorization] = name
        return name

    def _verify(self, token: str) -> Mapping[str, Any]:
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
        ids = {name: claims[name].lower() for name in ("sub", "merchant_id")}
        caller = Caller("jwt", ids["sub"], ids["merchant_id"], frozenset(claims["scope"].split()))
        verified = {**claims, **ids, "caller": caller}
        if len(token) <= _LONGEST:
            if len(self._known) >= _REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[token] = verified
        return verified
