"""The log of the server."""

import logging

log = logging.getLogger("stub_server")
