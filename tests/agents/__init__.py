"""The tools for coding agents, with the client of the protocol's maintainers, over both doors."""
