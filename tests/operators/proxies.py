"""nginx and Caddy with the files of docs/deploy, which differ from those by ports, certificate and
addresses alone.
"""

import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx2

from ..support.authority import server_context
from ..support.processes import free_port

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"
NAME = "sandbox.example.com"
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin"])
NGINX, CADDY = (shutil.which(name, path=PATH) for name in ("nginx", "caddy"))


class Front:
    """A proxy that serves TLS for `sandbox.example.com` on a port of this machine."""

    def __init__(self, port: int, authority: Path) -> None:
        self.port = port
        self.url = f"https://{NAME}:{port}"
        self._context = ssl.create_default_context(cafile=str(authority))

    def client(self, address: str = "127.0.0.1", **headers: str) -> httpx2.Client:
        """A client that comes from an address of this machine."""
        transport = httpx2.HTTPTransport(verify=self._context, local_address=address)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx2.Client(base_url=self.url, transport=transport, headers=sent, timeout=120)


@contextmanager
def resolving() -> Iterator[None]:
    """The name is this machine, until the block ends."""
    original = socket.getaddrinfo

    def getaddrinfo(host: Any, *others: Any, **named: Any) -> Any:
        return original("127.0.0.1" if host == NAME else host, *others, **named)

    with patch.object(socket, "getaddrinfo", getaddrinfo):
        yield


@contextmanager
def proxy(program: str, folder: Path, servers: Sequence[int]) -> Iterator[Front]:
    """nginx or Caddy before servers at ports of this machine, until the block ends."""
    _, authority = server_context(folder, NAME)
    port = free_port()
    write = write_nginx if program == "nginx" else write_caddy
    command = write(folder, port, servers)
    with resolving(), subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 60
            while not listens(port):
                assert process.poll() is None, "the proxy ended"
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield Front(port, authority)
        finally:
            process.terminate()


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def write_nginx(folder: Path, port: int, servers: Sequence[int]) -> list[str]:
    """The command of nginx with the file as it is included by Debian's nginx.conf."""
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    lines = "\n".join(f"    server 127.0.0.1:{server} max_fails=0;" for server in servers)
    text = text.replace("    server 127.0.0.1:4600 max_fails=0;", lines)
    text = text.replace("listen 443", f"listen 127.0.0.1:{port}").replace(
        "listen 80;", f"listen 127.0.0.1:{free_port()};"
    )
    text = re.sub(r"/etc/letsencrypt/\S+\.pem", str(folder / "server.pem"), text)
    (folder / "sandbox.conf").write_text(text, encoding="utf-8")
    (folder / "temporary").mkdir()
    own = "".join(
        f"    {kind}_temp_path {folder / 'temporary'};\n" for kind in ("client_body", "proxy")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off;\npid {folder / 'pid'};\nerror_log {folder / 'error.log'};\nevents {{}}\nhttp"
        f" {{\n{own}    access_log {folder / 'access.log'};\n    include"
        f" {folder / 'sandbox.conf'};\n}}\n",
        encoding="utf-8",
    )
    if os.getuid() == 0:
        folder.chmod(0o755)
        with (folder / "nginx.conf").open("a") as file:
            file.write("user root;\n")
    assert NGINX is not None
    subprocess.run([NGINX, "-t", "-c", folder / "nginx.conf"], check=True, capture_output=True)
    return [NGINX, "-c", str(folder / "nginx.conf")]


def write_caddy(folder: Path, port: int, servers: Sequence[int]) -> list[str]:
    """The command of Caddy with the file and a certificate of ours: it gets none for this name."""
    text = (DEPLOY / "Caddyfile").read_text(encoding="utf-8")
    text = text.replace(
        "{$SANDBOX_HOST:sandbox.example.com} {",
        f"https://{NAME}:{port} {{\n\ttls server.pem server.pem",
    )
    text = text.replace(
        "{$SANDBOX_SERVERS:127.0.0.1:4600}", " ".join(f"127.0.0.1:{server}" for server in servers)
    )
    options = "{\n\tadmin off\n\tauto_https disable_redirects\n\tpersist_config off\n}\n"
    (folder / "Caddyfile").write_text(options + text, encoding="utf-8")
    assert CADDY is not None
    return [CADDY, "run", "--config", "Caddyfile", "--adapter", "caddyfile"]
