"""The program of `certify --effects-command`: a small server gives the sandbox's server
what it prints.
"""

import secrets
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

import click

from ..core.text import is_local
from .options import Unusable

_PATIENCE = 3  # seconds that the program has; the server waits four


@contextmanager
def answering(program: str, server: str) -> Iterator[str]:
    """An address at which `server` finds what the program prints, each time anew.

    Raises UsageError, Unusable.
    """
    if not is_local(urlsplit(server).hostname):
        raise click.UsageError(
            "--effects-command needs a server on this machine. Give --effects URL instead."
        )
    _printed(program)
    path = f"/{secrets.token_urlsafe(16)}"  # so that no page of a browser has the program run

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Run the program."""
            status, body = 404, b""
            if self.path == path:
                try:
                    status, body = 200, _printed(program)
                except Unusable:
                    status = 500
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the report does."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as listening:
        Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listening.server_address[1]}{path}"
        finally:
            listening.shutdown()


def _printed(program: str) -> bytes:
    """What the program prints. Raises Unusable."""
    try:
        words = shlex.split(program)
        # the user's
        return subprocess.run(words, capture_output=True, timeout=_PATIENCE, check=True).stdout  # noqa: S603
    except subprocess.CalledProcessError as error:
        raise Unusable(f"--effects-command ended with exit code {error.returncode}.") from None
    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
        raise Unusable(f"--effects-command cannot be run: {error}.") from None
