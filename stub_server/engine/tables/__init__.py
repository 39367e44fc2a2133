"""The records of one merchant in memory, found by id and unique key, listed by the page, and
counted.

Imports `core` alone, and knows nothing of HTTP, of the rules or of the contract. Begin with
`specs.py`, which declares the tables, and `table.py`, which is one of them; `store.py` puts the
tables of a merchant together.
"""
