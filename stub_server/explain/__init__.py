"""Floor 10: says why a request was refused, and finds the nearest one that would have succeeded."""
