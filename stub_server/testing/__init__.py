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
    "AsyncInbox": "awaitable",
    "AsyncSandbox": "awaitable",
    "Credentials": "sandbox",
    "Fault": "parts",
    "Inbox": "parts",
    "Refused": "http",
    "Sandbox": "sandbox",
    "Server": "server",
    "connected": "server",
    "running": "server",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
