"""Floor 5: whether a world keeps the invariants that `GET /_sandbox/invariants` promises."""
