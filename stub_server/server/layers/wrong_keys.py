"""Wrong admin and control keys, which are counted by address."""

from math import ceil

from ...core.problem import Limited
from ...core.text import counted
from ..request import Request
from ..server import Server


def count_wrong_key(server: Server, request: Request) -> None:
    """Count a wrong admin or control key of an address on a public server; elsewhere they follow from the seed.

    Raises Limited after ten in a minute.
    """
    if not server.settings.is_public:
        return
    guesses, address = server.guesses, request.peer or ""
    wait = ceil(guesses.wait_of(address))
    if wait:
        message = f"Too many wrong keys from this address: wait {counted(wait, 'second')}. The right one works at once."
        raise Limited(message, headers={"Retry-After": str(wait)})
    guesses.count(address)
