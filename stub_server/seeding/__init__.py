"""Floor 5: fills a sandbox with a past, by actors who act through the engine as requests and the clock do.

The same scenario, seed and time give the same bytes. Imports `engine` and the rooms below it.
Begin with `filling.py`, which calls the others. `planning.py` draws who comes to buy, `sales.py` has them come, and
`shop.py` has them pay, renew and leave; `script.py` is the queue of what happens when. Every random choice is drawn by
`drawing/`.
"""
