"""The contract: reads, bundles, checks and compiles the OpenAPI documents.

Imports `core` alone. Begin with `bundle.py`, which makes one document of files and overlays, and
`document.py`, the typed view of it that other rooms use. `generated.py` writes enums and lists from
its extension tables. `checks.py` checks the result, and `schema.py` compiles it. `secrets.py` says
what is secret, and `redaction.py` removes it from messages.
"""
