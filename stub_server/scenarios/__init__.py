"""Floor 3: scenario files, read and validated: what a sandbox is seeded with.

It imports `contract/` and `kernel/`. Begin with `scenario.py`; `seeding/` makes records of a scenario.
"""
