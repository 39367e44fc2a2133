"""The reference run: stock Connexion and the sandbox decide the same about the same requests.

`asking.py` generates the requests from the contract, `stock.py` is Connexion as it comes, `ours.py`
the sandbox's layers, `differences.py` the places where they differ on purpose.
"""
