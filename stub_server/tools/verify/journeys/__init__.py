"""The journeys of a run: for each operation and each kind of record, the probes that the
contract suggests.
"""
