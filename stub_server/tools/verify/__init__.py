"""Compares a running backend with the contract, and with this sandbox's own behaviour.

Begin with `run.py`, then by what you look for:

- what is sent: `journeys/`, whose `probes.py` are made by `building.py` from the values of
  `variants.py`; `catalogue.py` reads the contract
- to whom: `walking.py` sends to `target.py` and a fork of `twin.py`; `cleanup.py` removes what was
  made
- what departs: `judging.py`, by the twin's answers, and `conformity.py`, by the contract
- what is reported: `merging.py` keeps the `findings.py` of a run and merges them, `learned.py` what
  else it knows, `where.py` has their lines; `showing.py`, `outcome.py`, and `forms.py` with
  `templates/`
- what corrects the contract: `correcting.py`
- traffic of others: `observed.py`, recorded (`har.py`) or through a proxy (`proxy.py`)
"""
