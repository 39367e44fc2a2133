"""Floor 3: draws what a seeded sandbox contains from random streams: people, projects, prices, times and outcomes.

Imports `scenarios`, `domain` and `kernel`; knows no store and no engine. One seed draws the same on every machine, so
the order of the draws must not change. Begin with `draw.py`, then `people.py`; the tables are in `fixtures/catalogue/`.
"""
