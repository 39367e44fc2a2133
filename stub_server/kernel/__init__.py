"""Floor 0: what every other floor uses; the standard library alone."""
