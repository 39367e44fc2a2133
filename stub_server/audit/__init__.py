"""Floor 5: checks a world's invariants, for `GET /_sandbox/invariants`."""
