"""A server for tests: started in a process of its own, or one that runs already."""

import os
import re
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import date

import httpx2

from ..core.members import given
from .http import Refused, done, instant, shown
from .sandbox import Sandbox

__tracebackhide__ = True  # a failed test shows the test's own lines
# Without -P a types.py or email.py of the directory that tests run in would be imported.
OWN = (sys.executable, "-P", "-m", "stub_server")
_START = 60.0  # seconds
_ADDRESS = re.compile(r"address\s+(http://\S+)")


def authorities(url: str) -> ssl.SSLContext:
    """Whom a client of this address trusts: the machine's certificate authorities, if it asks over
    TLS.

    Reading them takes a quarter of a second, which other clients need not wait for.
    """
    if url.startswith("http://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx2.create_ssl_context()


class Server:
    """A server that answers. `url` has no slash at the end."""

    def __init__(self, url: str, admin_key: str | None = None) -> None:
        """`admin_key` is needed for a server that does not listen on loopback alone."""
        self.url = url.rstrip("/")
        self._transport = httpx2.HTTPTransport(verify=authorities(self.url))
        self._headers = {}
        if admin_key is not None:
            self._headers["X-Sandbox-Admin-Key"] = admin_key
        self.control = self.client(f"{self.url}/_sandbox", self._headers)

    def client(self, base_url: str, headers: Mapping[str, str]) -> httpx2.Client:
        """A client of this server. All share their connections, which end with the server."""
        return httpx2.Client(
            base_url=base_url,
            headers=dict(headers),
            transport=self._transport,
            timeout=30,
            trust_env=False,
        )

    def sandbox(
        self,
        name: str | None = None,
        *,
        scenario: str | None = None,
        seed: int | None = None,
        now: date | str | None = None,
        **settings: object,
    ) -> Sandbox:
        """Make a sandbox; as a context manager it is deleted at the end of the block.

        `scenario`, `seed` and `now` default to those of the server. `settings` are those that
        `PATCH /_sandbox/settings` takes, such as `autopay=5`. Raises Refused.
        """
        begins = None if now is None else instant(now)
        body = given(name=name, scenario=scenario, seed=seed, now=begins, settings=settings or None)
        return Sandbox(
            self, shown(self.control.post("/sandboxes", json=body), "sandbox"), self._headers
        )

    def forget(self, name: str) -> None:
        """Delete a sandbox, if it exists."""
        try:
            answer = self.control.delete(f"/sandboxes/{name}")
        except httpx2.ConnectError:  # they ended with the server
            return
        if answer.status_code != 404:
            done(answer)

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()


@contextmanager
def running(
    *flags: str, admin_key: str | None = None, command: Sequence[str] = OWN
) -> Iterator[Server]:
    """Start a server on a free port until the block ends.

    `flags` are those of `stub-server serve`, such as `running("--seed", "7")`. `command` runs
    `stub-server` where this Python has not what it needs, such as `("uvx", "--from", PATH,
    "stub-server")`. Raises RuntimeError with what the server said if it does not start.
    """
    whole = [*command, "serve", "--port", "0", "--log", "quiet", "--stop-on-eof", *flags]
    if admin_key is not None:
        whole += ["--admin-key", admin_key]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as said,
        subprocess.Popen(  # noqa: S603 - our own
            whole,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env=_environment(),
        ) as process,
    ):
        assert process.stdout is not None
        try:
            address = next(filter(None, map(_ADDRESS.search, process.stdout)), None)
            if address is None:  # the banner ends without it
                process.wait(_START)
                said.seek(0)
                raise RuntimeError(f"The server did not start: {said.read().strip()}")
            with connected(address[1], admin_key) as server:
                yield server
        finally:
            process.terminate()


def _environment() -> dict[str, str]:
    """This process's environment, without what is meant for it or for another server."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("STUB_", "PYTHONPATH", "PYTHONWARNINGS"))
    }


@contextmanager
def connected(url: str, admin_key: str | None = None) -> Iterator[Server]:
    """Use a server that runs already. Raises Refused where none answers, or it needs a key."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(closing(Server(url, admin_key)))
            shown(server.control.get("/sandboxes", params={"limit": 1}), "sandboxes")
        except (httpx2.TransportError, httpx2.InvalidURL, Refused) as error:
            advice = (
                "Give the address of a server that runs, and its admin key (--sandbox-admin-key) if"
                " it has one."
            )
            raise Refused(f"{url} cannot be used: {error}\n{advice}") from None
        yield server
