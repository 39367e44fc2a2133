"""What outlives the process: a sandbox's state and steps as lines of JSON, in files and in the
tables of a database.

Imports `data` and above; the sandboxes themselves are in memory. Begin with `state.py`, then
`lines.py`. `package.py` packs lines into a file. What is read passes `fitting.py`, which converts
it to the served contract, and `admitting.py`, which makes the sandbox. `exports.py` has the two
kinds of files. `sql.py` has the tables and statements of a database, `sqlite.py` and `postgres.py`
send them.
"""
