"""Prism as a proxy that validates what goes through it."""

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2

from ..support.examples import requests
from ..support.requests import OPERATIONS

_PATIENCE = 60.0


def proxied(bin_: Path, contract: Path, url: str) -> Iterator[str]:
    """What the proxy refuses of the contract's examples, sent to a fresh world one
    after the other.
    """
    httpx2.post(f"{url}/_sandbox/reset", timeout=60).raise_for_status()
    token = httpx2.get(f"{url}/_sandbox/credentials", timeout=60).json()["jwt"]
    shown = httpx2.get(f"{url}/openapi.json", timeout=60).json()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(bin_ / "prism"), "proxy", str(contract), url, "--errors", f"--port={port}"]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(port, process)
            headers = {"Authorization": f"Bearer {token}"}
            with httpx2.Client(
                base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60
            ) as client:
                for operation in OPERATIONS.values():
                    for path, body in requests(shown, operation):
                        media = {"Content-Type": "application/json"} if body else {}
                        answer = client.request(operation.method, path, content=body, headers=media)
                        if answer.status_code >= 300:
                            yield f"{operation.id}: {answer.text[:500]}"
        finally:
            process.terminate()
            process.wait(_PATIENCE)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("Prism did not start.")
