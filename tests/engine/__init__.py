"""Proofs of the engine: a defect changes all or nothing, the log is bounded, and a world is its
steps (`state`).
"""
