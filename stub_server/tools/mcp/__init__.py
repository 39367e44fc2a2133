"""Tools for coding agents, by the Model Context Protocol: in the server at `/_sandbox/mcp`, over stdio by `mcp`.

`tools.py` has the twelve tools, written against `Ask` of `session.py`; `inside.py` and `stdio.py` are the two doors.
It may import `server/` and what is above it, and `testing/` to start a server. Begin with `tools.py`.
"""


def missing(error: ImportError) -> str:
    """What to do without the package of the protocol."""
    return f"The tools for coding agents need a package ({error}). Install it: pip install 'membership-sandbox[mcp]'"
