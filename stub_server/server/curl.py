"""A request as a command for a shell, to be pasted."""

from collections.abc import Mapping
from shlex import quote
from urllib.parse import quote as encoded

from ..core.text import SAFE_IN_PATHS
from .request import CONTROL, OF_CONNECTIONS

LARGEST = 98_304  # bytes of a body: a shell takes no longer argument than 128 KiB
MADE_ANEW = frozenset(
    (*(name.decode() for name in OF_CONNECTIONS), "accept-encoding", "content-length", "host")
)
"""Headers that a command leaves out: the client that runs it sends its own."""


def command(
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    base_url: str,
    has_admin_key: bool,
) -> str | None:
    """One command; None for a body that no shell takes. `path` is the path in the sandbox at
    `base_url`.

    A call to the control surface reads the admin key from the environment, where the server has
    one.
    """
    if len(body) > LARGEST or b"\x00" in body:
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    url = base_url + encoded(path, safe=SAFE_IN_PATHS)
    asked = "-I" if method == "HEAD" else f"-X {quote(method)}"
    if query:
        url += f"?{query}"
    words = ["curl -sS -g --path-as-is", asked, quote(url)]
    for name, value in headers.items():
        if text or name != "content-type":
            words.append(f"-H {quote(f'{name.title()}: {value}')}")
    if has_admin_key and path.startswith(CONTROL):
        words.append('-H "X-Sandbox-Admin-Key: $STUB_ADMIN_KEY"')
    if text:
        words.append(f"--data-raw {quote(text)}")
    return " ".join(words)
