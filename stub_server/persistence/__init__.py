"""What outlives the process: the states and steps of sandboxes in SQL tables. The sandboxes themselves are in memory.

Floor 6: imports `files/`, `engine/` and below, and what makes sandboxes in `sandboxes/`. Begin with `sql.py` (the
tables and statements) and `commits.py` (how a step is stored); `persistence.py` creates and deletes sandboxes in the
store, `opening.py` reads them back, `sqlite.py` and `postgres.py` send the statements.
"""
