"""Programs that drive a server: `verify/` compares a backend with the contract, `replay/` repeats a
recording.

Each has a server in its own process, so they may import `app.py` and every room above; `cli` calls
them. `mcp/` has the tools of coding agents, which servers serve too: `app.py` imports it. Begin
with the `__init__.py` of each.
"""
