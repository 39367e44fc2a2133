"""The verb `mcp`: the tools for coding agents over standard input and output."""

import asyncio
from contextlib import ExitStack

import click

from ..tools.mcp import missing
from .options import Unusable, key_headers


def mcp(
    address: str | None, sandbox: str | None, admin_key: str | None, control_key: str | None
) -> None:
    """Serve tools for coding agents on standard input and output."""
    if control_key is not None and sandbox is None:
        raise click.UsageError("--control-key is the key of one sandbox: give --sandbox too.")
    try:
        from ..tools.mcp.stdio import serve
    except ImportError as error:
        raise Unusable(missing(error)) from None
    with ExitStack() as stack:
        if address is None:
            from ..testing.server import running

            address = stack.enter_context(running()).url
        asyncio.run(serve(address, key_headers(admin_key, control_key), sandbox))
