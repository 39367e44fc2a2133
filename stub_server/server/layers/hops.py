"""What servers of one store tell each other: whose request is forwarded, and that nothing was done
with it.
"""

import hmac
from string import punctuation
from time import monotonic, time
from urllib.parse import quote

from starlette.types import Receive, Scope

from ...core.ids import keyed_digest
from ...core.problem import Unavailable

# the last header of a forwarded request; in an answer to one it is one of the words below
HOP = b"x-sandbox-hop"
VALID = 30  # seconds by which the clocks of two servers may differ
# seconds in which a server that is about to stop is asked nothing: its end would cut requests off
AVOIDED = 2.0


class Hops:
    """The signed header, and the words that a server answers to another one, and to no client.
    Servers of one store share the secret.

    `elsewhere` and `stopping` say that nothing was done: the server does not have the sandbox, or
    is about to stop; `dropped`, that a fault rule drops the client's connection without an answer.
    The words are secret: a fault rule may add any header to an answer.
    """

    def __init__(self, secret: bytes) -> None:
        self._key = keyed_digest(secret, HOP)
        self.elsewhere, self.stopping, self.dropped = map(
            self._signed, (b"elsewhere", b"stopping", b"dropped")
        )
        self._stopping: dict[str, float] = {}  # until when a server is asked nothing, by address

    def avoid(self, address: str) -> None:
        """Ask a server nothing for a while, since it is about to stop."""
        self._stopping[address] = monotonic() + AVOIDED

    def avoids(self, address: str) -> bool:
        """Whether a server is asked nothing for now."""
        return self._stopping.get(address, 0.0) > monotonic()

    def header(self, scope: Scope) -> tuple[bytes, bytes]:
        """The header of a forwarded request: the time, the client's address, and a signature of
        both and the target.
        """
        address, _ = scope.get("client") or ("-", 0)
        claim = b"%d %b" % (time(), address.encode("latin-1", "replace"))
        return HOP, b"%b %b" % (claim, self._signature(scope, claim))

    def take(self, scope: Scope) -> str | None:
        """Remove the header of another server from a request; returns the client's address.

        A header that is not the last one, or is forged or old, stays and is ignored here.
        """
        headers = scope["headers"]
        if not headers or headers[-1][0] != HOP:
            return None
        claim, _, signature = headers[-1][1].rpartition(b" ")
        if not hmac.compare_digest(self._signature(scope, claim), signature):
            return None
        at, _, address = claim.partition(b" ")
        if abs(time() - int(at)) > VALID:
            return None
        scope["headers"] = headers[:-1]
        return str(address, "latin-1")

    def _signature(self, scope: Scope, claim: bytes) -> bytes:
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        return self._signed(
            b"\n".join((scope["method"].encode(), target_of(scope), host.strip(), claim))
        )

    def _signed(self, text: bytes) -> bytes:
        return keyed_digest(self._key, text).hex().encode()


class NotThere(Unavailable):
    """503: the server that should have the sandbox has done nothing.

    `receive` gives the body from its start; None where the body is too large to be sent again.
    """

    code = "store_unavailable"

    def __init__(self, receive: Receive | None, said: bytes | None = None) -> None:
        """`said` is a word for the server that sent the request."""
        headers = {"Retry-After": "1"}
        if said is not None:
            headers[HOP.decode()] = said.decode()
        super().__init__(
            "The server that has this sandbox cannot be reached. Send the request again.",
            headers=headers,
        )
        self.receive = receive


def target_of(scope: Scope) -> bytes:
    """Path and query of a request as they were sent, in ASCII; a layer may have changed
    them in the scope.
    """
    query = quote(scope["query_string"], safe=punctuation).encode()
    path: bytes = scope["raw_path"]
    return path + b"?" + query if query else path
