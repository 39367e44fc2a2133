"""Targets that are slow, break off, or speak no HTTP: a front of a sandbox, and servers
of raw bytes.
"""

import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

import httpx2

from ..support.live import NO_TLS

Treat = Callable[[int, str, str], str]
"""By the number of a request (from 1), its method and its path:

`pass`, `drop`, `lose`, which drops the answer, `empty`, which leaves an object without members, or
`odd`, which gives records ids that are none.
"""
Speak = Callable[[socket.socket], None]
"""What a server of raw bytes does with a connection."""


@contextmanager
def fronting(url: str, treat: Treat) -> Iterator[str]:
    """A server in front of a sandbox, until the block ends; the control surface is passed
    on unchanged.
    """
    numbers = count(1)

    class Front(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            with suppress(OSError):
                super().handle_one_request()

        def treated(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            does = (
                "pass"
                if self.path.startswith("/_sandbox")
                else treat(next(numbers), self.command, self.path)
            )
            if does != "drop":
                headers = {
                    name: value
                    for name, value in self.headers.items()
                    if name.lower() != "content-length"
                }
                answer = client.request(
                    self.command, url + self.path, content=body or None, headers=headers
                )
            if does in ("drop", "lose"):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            content = b"{}" if does == "empty" else answer.content
            if does == "odd":
                content = content.replace(b'"id":"', b'"id":[],"was":"')
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name not in (
                    "date",
                    "server",
                    "content-length",
                    "transfer-encoding",
                    "content-encoding",
                ):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = treated

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    with (
        httpx2.Client(timeout=30, verify=NO_TLS) as client,
        _running(Server(("127.0.0.1", 0), Front)) as address,
    ):
        yield address


@contextmanager
def speaking(speak: Speak) -> Iterator[str]:
    """A server that does the same with every connection, until the block ends."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                speak(self.request)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 100

    with _running(Server(("127.0.0.1", 0), Handler)) as address:
        yield address


@contextmanager
def _running(server: socketserver.TCPServer) -> Iterator[str]:
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        socket.socket.close(server.socket)
        thread.join(10)
