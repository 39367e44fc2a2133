"""Everything at once, for ten minutes: whether a shared server stays up, stays fair and
stays small.
"""
