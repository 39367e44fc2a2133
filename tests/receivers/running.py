"""The shops as processes beside a sandbox."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PYTHON = (sys.executable, str(Path(__file__).with_name("shop.py")))
NODE = ("node", str(Path(__file__).with_name("shop.mjs")))


@contextmanager
def shop(
    api: httpx2.Client, *args: str, program: tuple[str, ...] = PYTHON, key: str = KEY
) -> Iterator[str]:
    """A shop that sells through this API; the address of its webhooks."""
    token = api.headers["authorization"].partition(" ")[2]
    address = str(api.base_url).rstrip("/")
    command = [*program, "--key", key, "--api", address, "--token", token, *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/webhooks"
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()
