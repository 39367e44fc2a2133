"""Floor 7: reads the journal of a sandbox, which `engine/journal.py` writes, for the controls and for recordings.

It may import `engine/`, `contract/`, `calls/` and the floors below. Begin with `entries.py`; `expectations.py` verifies
requests, `archive.py` writes HAR, `recordable.py` chooses what a recording contains.
"""
