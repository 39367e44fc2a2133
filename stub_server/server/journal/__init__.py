"""Reads the journal of a sandbox, which `engine/kept.py` writes, for the controls and for
recordings.

Begin with `entries.py`; `expectations.py` verifies requests, `archive.py` writes HAR,
`recordable.py` chooses what a recording contains.
"""
