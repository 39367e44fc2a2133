"""Basics that every other room uses: clock, ids, timers, money, records, refusals and signatures.

Imports the standard library and orjson alone. Begin with `record.py` (what is stored) and
`problem.py` (how a request is refused); then `timers.py` and `clock.py` (when something happens),
`ids.py`, and `slices.py` (long work).
"""
