"""Floor 7: what operations are given and return: calls, lists and replies."""
