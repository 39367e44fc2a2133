"""Who has opened the console: sessions that are sealed in a cookie, and form tokens.

A server keeps no list of them. The cookie says until when it holds, and is sealed with the server's
secret and the key that was given. So it has no key in it, holds at every server of a store, and
ends when the key does.
"""

import hmac
import secrets
from collections.abc import Mapping
from hashlib import sha256
from time import time
from typing import NamedTuple

from werkzeug.http import parse_cookie

from ..contract.secrets import KEY_HEADERS

LASTS = 12 * 3600  # seconds of a session
_LONGEST, _MOST_IDS = 150, 8  # characters of an id, and ids of a request that are looked at
ADMIN_KEY, CONTROL_KEY = KEY_HEADERS


class Visitor(NamedTuple):
    """Whose browser this is: the id in its cookie, new where it had none, and the headers
    of its session.
    """

    ident: str
    is_new: bool
    keys: Mapping[str, str]


class Sessions:
    """Those of one server, or of all servers of a store."""

    def __init__(self, secret: bytes) -> None:
        """`secret` is random; servers of a store have the store's."""
        self._secret = hmac.digest(secret, b"console", "sha256")

    def visitor(self, cookies: str, host: str, keys: Mapping[str, str]) -> Visitor:
        """The visitor with these cookies, of whom `keys` may be used by their headers if a session
        was begun with one.

        Paths have cookies of their own: of several ids one with a session counts.
        """
        # it raises for other letters
        sent = parse_cookie(cookies.encode("ascii", "ignore").decode())
        given = sent.getlist(cookie_name(host))[:_MOST_IDS]
        # What is quoted may be decoded to other letters.
        found = [each for each in given if each.isascii() and 0 < len(each) <= _LONGEST]
        for ident in found:
            for header, key in keys.items():
                if self._is_of(ident, key):
                    return Visitor(ident, False, {header: key})
        if found:
            return Visitor(found[0], False, {})
        return new_visitor()

    def begin(self, key: str) -> str:
        """The id of a new session of somebody who has given a key."""
        drawn = f"{secrets.token_urlsafe(32)}.{int(time()) + LASTS}"
        return f"{drawn}.{self._seal('session', drawn, key)}"

    def _is_of(self, ident: str, key: str) -> bool:
        """Whether an id is that of a session which was begun with a key and has not ended."""
        drawn, _, seal = ident.rpartition(".")
        if not hmac.compare_digest(seal, self._seal("session", drawn, key)):
            return False
        return int(drawn.rpartition(".")[2]) > time()

    def token(self, ident: str) -> str:
        """What a form of this visitor carries."""
        return self._seal("form", ident)

    def knows(self, ident: str, token: str) -> bool:
        """Whether a form's token is this visitor's."""
        return hmac.compare_digest(self.token(ident).encode(), token.encode())

    def _seal(self, *parts: str) -> str:
        """Proof that a server with the secret has said this."""
        return hmac.new(self._secret, "\n".join(parts).encode(), sha256).hexdigest()


def new_visitor() -> Visitor:
    """Somebody whose browser has no id, without a session."""
    return Visitor(secrets.token_urlsafe(32), True, {})


def cookie_name(host: str) -> str:
    """Cookies of one host are sent to all its ports: the name has the port."""
    _, colon, port = host.rpartition(":")
    return f"stub_console_{port if colon and port.isdigit() else 80}"
