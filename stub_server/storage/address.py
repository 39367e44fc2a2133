"""The address of a database, which may have a password: how it is printed, and errors that may
quote it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import conninfo

from .database import StoreError

_SECRET = ("password", "secret", "key")
"""Parameters with one of these in their name have a secret value."""


def printable(address: str) -> str:
    """The address without its user, password and parameters. Whatever prints an address prints
    this.

    Raises StoreError for one that cannot be read, and quotes nothing of that: any part of it may be
    one of a password.
    """
    found = _parameters(address)
    host = found.get("host", "")
    port = found.get("port", "")
    name = found.get("dbname", "")
    has_port = port == "" or port.replace(",", "").isdigit()
    if "@" in host + name or not has_port:  # a reserved character of the password was not encoded
        raise _unreadable()
    shown = "" if host.startswith("/") else host  # the directory of a socket
    return f"postgresql://{shown}{port and ':' + port}/{name}"


@contextmanager
def without_secrets(address: str) -> Iterator[None]:
    """Within it a connection is opened: what psycopg raises quotes no secret of the address."""
    try:
        yield
    except psycopg.Error as error:
        text = str(error)
        for name, value in _parameters(address).items():
            if value and any(part in name for part in _SECRET):
                text = text.replace(value, "***")
        raise psycopg.OperationalError(text) from None


def _parameters(address: str) -> dict[str, str]:
    """The parameters of an address, decoded. Raises StoreError."""
    try:
        return {name: str(value) for name, value in conninfo.conninfo_to_dict(address).items()}
    except psycopg.Error:
        raise _unreadable() from None


def _unreadable() -> StoreError:
    return StoreError(
        "--store postgresql://…: the address cannot be read. Write"
        " postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with / : @ ? # and % of the password"
        " percent-encoded, such as %2F for /."
    )
