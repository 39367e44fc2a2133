"""A relay between a client and a server that can be cut and restored: what a bad network does."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Relay:
    """Passes bytes on both ways. While it is cut every connection is closed at once."""

    def __init__(self, port: int) -> None:
        """`port` is the server's."""
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self.swallows_answers = self.is_cut = False
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address to use instead of the server's."""
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Close every connection, and each that comes."""
        with self._lock:
            self.is_cut = True
            for end in self._open:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def restore(self) -> None:
        """Pass on what comes from now on."""
        self.is_cut = False

    def close(self) -> None:
        """End it."""
        self.cut()
        self._listener.shutdown(socket.SHUT_RDWR)  # closing alone would not wake the thread
        self._thread.join(5)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with self._lock:
                    if self.is_cut:
                        client.close()
                        continue
                    server = socket.create_connection(("127.0.0.1", self._server))
                    self._open += [client, server]
                threading.Thread(
                    target=self._pass, args=(client, server, False), daemon=True
                ).start()
                threading.Thread(
                    target=self._pass, args=(server, client, True), daemon=True
                ).start()

    def _pass(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if answers and self.swallows_answers:
                    break
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@contextmanager
def relaying(port: int) -> Iterator[Relay]:
    """A relay to a port of this machine until the block ends."""
    relay = Relay(port)
    try:
        yield relay
    finally:
        relay.close()
