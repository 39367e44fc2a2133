"""A real HTTP receiver for webhooks: a server on a free loopback port that keeps what
it is sent.
"""

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(slots=True)
class Received:
    """One request as it came in; header names in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Receiver:
    """What to answer, and what has come in.

    `decide` is told of a request and its number, and answers its status. `hangs_up` is told how
    many requests a connection has had, and answers whether the receiver closes it without an
    answer.
    """

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b'{"received":true}'
    delay: float = 0.0
    arrived: threading.Event = field(default_factory=threading.Event)
    hold: threading.Event | None = None
    acts: Callable[[Received], object] | None = None
    requests: list[Received] = field(default_factory=list)
    decide: Callable[[Received, int], int] | None = None
    hangs_up: Callable[[int], bool] | None = None
    connections: int = 0


@contextmanager
def receiving(port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver until the block ends, on a free port unless told."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # head and body in one go: apart, the second would wait for the first to be acknowledged
        wbufsize = -1

        asked = 0  # requests of this connection

        def setup(self) -> None:
            super().setup()
            receiver.connections += 1

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Received(self.path, headers, body)
            receiver.requests.append(request)
            number = len(receiver.requests)
            self.asked += 1
            if receiver.hangs_up is not None and receiver.hangs_up(self.asked):
                self.close_connection = True
                return
            receiver.arrived.set()
            if receiver.acts is not None:
                receiver.acts(request)
            if receiver.hold is not None:
                receiver.hold.wait(10)
            time.sleep(receiver.delay)
            status = (
                receiver.status if receiver.decide is None else receiver.decide(request, number)
            )
            self.send_response(status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(receiver.body)))
            self.end_headers()
            self.wfile.write(receiver.body)

        def log_message(self, format: str, *args: object) -> None:
            """Silence: the tests look at `requests`."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # many may come at once

    server = Server(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver.url = (
        f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}/hook"
    )
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
    )
    thread.start()
    try:
        yield receiver
    finally:
        if receiver.hold is not None:
            receiver.hold.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
