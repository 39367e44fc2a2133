"""Floor 10: the pages for people, made by Flask, and the contract as files.

Pages read the contract, never the store; `examples.py` reads the records of one sandbox for the files.
"""
