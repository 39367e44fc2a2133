"""The sandboxes of one server: created, forked, found by name, reset, replaced by a file, and deleted.

Floor 6: imports `persistence/`, `files/`, `data/`, `delivery/`, `engine/` and below. Begin with `sandboxes.py`,
which has what requests do; `making.py` makes one or reads it from a file, `residence.py` opens those of a store
that are not in memory.
"""
