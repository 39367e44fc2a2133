"""The pages for people, made by Flask, the documentation among them, and the contract as files.

Imports `operations` and above. Pages read the contract, never the tables; `examples.py` reads the
records of one sandbox for the files. Begin with `application.py` and `shell.py`; `guide/` renders
the documentation.
"""
