"""Floor 10: says why a request was refused, and finds the nearest request that succeeds.

It sends requests through the layers of `http/` to copies of a sandbox. It may import every room but `console/` and the
floors above. Begin with `explaining.py`, then `search.py` (attempt, refusal, repair) and `repairs.py` (`KINDS`, by
error code). `live_examples.py` uses the same search for the examples of the served contract.
"""
