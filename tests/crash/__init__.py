"""Processes that are killed while they write: what was acknowledged is there when the directory
opens again.
"""
