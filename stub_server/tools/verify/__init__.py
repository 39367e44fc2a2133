"""Compares a running backend with the contract, and with this sandbox's own behaviour.

Begin with `run.py`, then by what you look for:

- what is sent: `journeys/`, `probes.py`, `variants.py`, and `catalogue.py`, which reads the
  contract
- to whom: `walking.py` sends to `target.py` and a fork of `twin.py`; `cleanup.py` removes what was
  made
- what departs: `judging.py`, by the twin's answers, and `conformity.py`, by the contract
- what is reported: `merging.py` keeps the `findings.py` of a run and merges them, `learned.py` what
  else it knows, `where.py` has their lines; `showing.py`, `outcome.py`, and `forms.py` with
  `templates/`
- what corrects the contract: `correcting.py`
- traffic of others: `observed.py`, recorded (`har.py`) or through a proxy (`proxy.py`)
"""
