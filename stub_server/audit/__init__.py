"""Floor 5: checks the invariants of a sandbox, for `GET /_sandbox/invariants` and for imported files.

It imports `engine/` and the floors below, and changes nothing. Begin with `LAWS` at the end of `laws.py`.
"""
