"""Planted defects:

`make mutants` changes one place of the code at a time and asks whether a test notices.
"""
