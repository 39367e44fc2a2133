"""The sandboxes of one server: created, forked, found by name, reset, replaced by a file, stored,
and deleted.

Begin with `sandboxes.py`, which puts one in place of another, on top of `creating.py`, which makes
them, and `loaded.py`, which has those in memory and opens others. `making.py` fills one or reads it
from a file. With a store, `persistence.py` creates and deletes them there, `commits.py` stores each
step (`pending.py`), and `opening.py` reads them back; `beside.py` keeps long work on the store away
from requests.
"""
