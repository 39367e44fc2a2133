"""The sandboxes of one server: created, forked, found by name, reset, replaced by a file, stored,
and deleted.

Begin with `sandboxes.py`, which puts one in place of another, on top of `creating.py`, which makes
them, and `loaded.py`, which has those in memory and opens others. `making.py` fills one or reads it
from a file or a store. With a store, `persistence.py` creates and deletes them there, and
`commits.py` stores each step (`pending.py`), away from requests.
"""
