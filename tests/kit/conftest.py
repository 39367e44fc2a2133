"""Tests of the kit have the plugin's own fixtures, of which tests/conftest.py has replaced some."""

from stub_server.testing.plugin import sandbox, sandbox_server

__all__ = ["sandbox", "sandbox_server"]
