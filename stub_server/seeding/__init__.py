"""Floor 5: fills a sandbox with a past, by actors who act through the engine as requests and the clock do.

The same scenario, seed and time give the same bytes. Imports `engine` and the rooms below it.
Begin with `filling.py`, which calls the others; `script.py` is the queue of what happens when, `sales.py` decides who
buys, `shop.py` what becomes of the orders, and `drawing` supplies every random choice.
"""
