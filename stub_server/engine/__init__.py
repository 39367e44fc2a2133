"""One sandbox and how it changes: every change is a step, which is recorded and then folded into
the state.

Imports `domain` and above; knows no HTTP. Begin with `step.py` (what a step is), `draft.py` (how
one is made) and `sandbox.py` (how it is folded and undone); then `scheduler.py` (what the clock
does) and `history.py` (how to go back). `ordering.py`, `closing.py`, `billing.py`, `renewals.py`,
`resources.py` and `attempts.py` draft what requests and jobs share. `tables/` has the records,
`lists.py` the log of events and the saved replies, `kept.py` the log of steps and the journal,
`fault_rules.py` what fails on demand, `laws.py` what must hold.
"""
