"""Who has opened the console: sessions with the key that was given, bounded in number and in time, and form tokens."""

import hmac
import secrets
from collections import OrderedDict
from hashlib import sha256
from threading import Lock
from time import monotonic
from typing import NamedTuple

from werkzeug.http import parse_cookie

MOST, LASTS = 200, 12 * 3600  # sessions, and seconds of one
_LONGEST = 100  # characters of an id


class Session(NamedTuple):
    """A key and the header that carries it; `sandbox` is the one that a control key is of, None for the admin key."""

    header: str
    key: str
    sandbox: str | None
    ends: float = 0.0


class Visitor(NamedTuple):
    """Whose browser this is: the id in its cookie, new where it had none, and the session behind the id."""

    ident: str
    is_new: bool
    session: Session | None

    @property
    def keys(self) -> dict[str, str]:
        """The headers that open the controls."""
        return {} if self.session is None else {self.session.header: self.session.key}


class Sessions:
    """Those of one server. Pages ask in several threads."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._kept: OrderedDict[str, Session] = OrderedDict()
        self._lock = Lock()

    def visitor(self, cookies: str, host: str) -> Visitor:
        """The visitor with these cookies. Paths have cookies of their own: of several ids one with a session counts."""
        sent = parse_cookie(cookies.encode("ascii", "ignore").decode())  # it raises for other letters
        found = [each for each in sent.getlist(cookie_name(host)) if 0 < len(each) <= _LONGEST]
        with self._lock:
            for ident in found:
                session = self._kept.get(ident)
                if session is not None and session.ends > monotonic():
                    return Visitor(ident, False, session)
        if found:
            return Visitor(found[0], False, None)
        return Visitor(secrets.token_urlsafe(32), True, None)

    def begin(self, session: Session) -> str:
        """The id of a new session; the one that began first makes room."""
        ident = secrets.token_urlsafe(32)
        with self._lock:
            self._kept[ident] = session._replace(ends=monotonic() + LASTS)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)
        return ident

    def end(self, ident: str) -> None:
        """Forget a session."""
        with self._lock:
            self._kept.pop(ident, None)

    def token(self, ident: str) -> str:
        """What a form of this visitor carries."""
        return hmac.new(self._secret, ident.encode(), sha256).hexdigest()

    def knows(self, ident: str, token: str) -> bool:
        """Whether a form's token is this visitor's."""
        return hmac.compare_digest(self.token(ident).encode(), token.encode())


def cookie_name(host: str) -> str:
    """Cookies of one host are sent to all its ports: the name has the port."""
    _, colon, port = host.rpartition(":")
    return f"stub_console_{port if colon and port.isdigit() else 80}"
