"""Floor 10: the Flask application with the pages for people. It reads the contract, never the store."""

from .application import create_console as create_console
