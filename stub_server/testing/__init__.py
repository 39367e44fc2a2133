"""Sandboxes for tests of applications, over HTTP. Begin with `Sandbox`; `docs/pytest.md` shows all
of it.

pytest loads `plugin` by itself; it has the fixtures. Anything else uses `running`, which starts a
server. Names are imported when they are first used: pytest imports this package in every run of a
machine that has it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .awaitable import AsyncInbox as AsyncInbox
    from .awaitable import AsyncSandbox as AsyncSandbox
    from .http import Refused as Refused
    from .parts import Fault as Fault
    from .parts import Inbox as Inbox
    from .sandbox import Credentials as Credentials
    from .sandbox import Sandbox as Sandbox
    from .server import Server as Server
    from .server import connected as connected
    from .server import running as running

_HOMES = {
    "awaitable": ("AsyncInbox", "AsyncSandbox"),
    "parts": ("Fault", "Inbox"),
    "sandbox": ("Credentials", "Sandbox"),
    "server": ("Server", "connected", "running"),
    "http": ("Refused",),
}
__all__ = sum(_HOMES.values(), ())


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
