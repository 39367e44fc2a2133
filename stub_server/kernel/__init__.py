"""Floor 0: clock, ids, timers, money, refusals and records: basics that every other floor uses.

It imports the standard library only. Begin with `record.py` and `problem.py`.
"""
