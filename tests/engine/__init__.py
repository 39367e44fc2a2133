"""Proofs of the engine: a world is its origin and its steps, a fault changes all or nothing, the log is bounded."""
