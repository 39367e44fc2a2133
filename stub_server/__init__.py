"""A contract-first, stateful sandbox of the Membership Commerce Service API, version 2."""

from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .app import create_app as create_app

__all__ = ["__version__", "create_app"]


def __getattr__(name: str) -> Any:
    # The application pulls in the whole server; `import stub_server` alone stays cheap.
    if name == "create_app":
        from .app import create_app

        return create_app
    raise AttributeError(name)
