"""The rules of the service as pure functions: records and an instant in, records or a refusal out.

Imports `contract` and `core`; knows no HTTP, table, clock or randomness. `engine` and `operations`
call the rules, and so does `data`. Begin with `orders.py` and `payments.py`; `projects.py` has
plans and products too, and `lifecycle.py` the moves between states that the contract allows.
`brcode.py`, `boleto.py`, `documents.py`, `places.py` and `calendar.py` are about Brazil.
"""
