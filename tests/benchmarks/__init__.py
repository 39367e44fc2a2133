"""How fast the sandbox is, beside other ways to serve the same operations."""
