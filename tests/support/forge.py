"""Tokens that nobody issued: the server's own secret, which its seed decides on loopback, in the
wrong hands.
"""

import base64
import json
import time
from typing import Any

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from stub_server.data.filling import MERCHANT_ID
from stub_server.settings import Settings

CLAIMS: dict[str, Any] = {
    "iss": "membership-sandbox",
    "sandbox": "surfaces",
    "sub": "6b0ad62c-54f5-4c6e-9d0a-3f2c8d1a7e90",
    "merchant_id": MERCHANT_ID,
    "scope": "*",
}


def claims(**changes: Any) -> dict[str, Any]:
    """Claims as the server writes them, valid for an hour.

    A change to None leaves the claim out.
    """
    now = int(time.time())
    made = CLAIMS | {"iat": now, "exp": now + 3600, "jti": "x"} | changes
    return {name: value for name, value in made.items() if value is not None}


def signed(settings: Settings, **changes: Any) -> str:
    """A token with the right signature."""
    key = OctKey.import_key(settings.signing_secret(b""))
    return jwt.encode({"alg": "HS256", "typ": "at+jwt"}, claims(**changes), key)


def signed_otherwise(secret: bytes, algorithm: str = "HS256") -> str:
    """A token with a signature of another secret or another algorithm of the same family."""
    header = {"alg": algorithm, "typ": "at+jwt"}
    return jwt.encode(header, claims(), OctKey.import_key(secret), algorithms=[algorithm])


def signed_rs256() -> str:
    """A token with a signature of a key pair of its own."""
    return jwt.encode({"alg": "RS256"}, claims(), RSAKey.generate_key(2048), algorithms=["RS256"])


def unsigned(algorithm: str = "none", **changes: Any) -> str:
    """A token that says it needs no signature, and has none."""
    parts = (json.dumps({"alg": algorithm, "typ": "JWT"}), json.dumps(claims(**changes)))
    return ".".join(base64.urlsafe_b64encode(p.encode()).rstrip(b"=").decode() for p in parts) + "."
