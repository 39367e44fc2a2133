"""Tools for coding agents, by the Model Context Protocol: in the server at `/_sandbox/mcp`, over
stdio by `mcp`.

`fixtures/agents.yaml` describes the twelve tools, which are written against `Ask` of `session.py`;
`endpoint.py` and `stdio.py` serve them.
It may import `server/` and what is above it, and `testing/` to start a server. Begin with
`tools.py`.
"""


def missing(error: ImportError) -> str:
    """What to do without the package of the protocol."""
    return (
        f"The tools for coding agents need a package ({error}). Install it: pip install"
        " 'membership-sandbox[mcp]'"
    )
