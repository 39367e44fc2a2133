"""Says why a request was refused, and finds the nearest request that succeeds.

It sends requests through the layers to copies of a sandbox. Begin with `explaining.py`, then
`repairs.py`: what refuses an attempt names the repair that makes the next one. `mending.py` has the
values, `attempt.py` the copies.
"""
