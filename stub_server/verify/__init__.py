"""Floor 12: compares a running backend with the contract, and with this sandbox's own behaviour.

It may import every room below; `commands/verify.py` alone uses it. Begin with `run.py`: `journeys/` makes probes,
`walking.py` sends them to the backend and to two sandboxes, `judging.py` compares the answers, and `outcome.py` makes
the report.
"""
