"""Clients generated from the contract by the tools that people use, in the languages
that they use.
"""
