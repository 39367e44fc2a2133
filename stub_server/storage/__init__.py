"""What outlives the process: a sandbox's state and steps as lines of JSON, in files and in the
tables of a database.

Imports `data` and above; the sandboxes themselves are in memory. Begin with `lines.py`, which
writes a copy of a sandbox, and `reading.py`, which makes one. `package.py` packs lines into a file.
What is read passes `fitting.py`, which converts it to the served contract, and `admitting.py`,
which refuses what does not fit. `exports.py` has the two kinds of files. `database.py` says what a
store is, `sql.py` has its tables and statements, and `sqlite.py` and `postgres.py` send them.
"""
